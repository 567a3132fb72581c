"""The build's verdict: what failed, once each, for people and for machines. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from measured import locate
from measured.claims import OUTCOMES, Claim
from measured.record import Audit, Call, Difference, Process, RunRecord
from measured.snippets import Place, Snippet


class Failure(msgspec.Struct, frozen=True):
    """One reason for the build to fail."""

    kind: str
    """One of KINDS."""
    place: Place
    snippet: str
    """Name of the snippet, or empty where the page itself is wrong."""
    message: str
    """One line."""
    details: list[str] = []
    """Further lines: sizes and values of a difference, the end of an output."""


DECLARED = "diverges as declared"
"""The verdict on a snippet that teaches a difference, and shows it."""

KINDS = (
    "mistake",
    "divergence",
    "unchecked",
    "disturbed",
    "expectation",
    "ending",
    "shown",
    "claim",
)

_STATEMENTS = {
    "ended early": "ended before its end",
    "signal": "died",
    "timeout": "did not end in time",
    "output limit": "printed too much",
    "raised": "raised",
    "finished": "finished",
}


def judge(snippet: Snippet, record: RunRecord) -> list[Failure]:
    """Everything that is wrong with one run of one snippet."""
    return [
        *_ending(snippet, record.observed),
        *_expectations(snippet, record),
        *_parity(snippet, record),
    ]


def _failure(
    kind: str, snippet: Snippet, message: str, details: list[str] | None = None
) -> Failure:
    return Failure(kind, snippet.place, snippet.name, message, details or [])


def _ending(snippet: Snippet, observed: Process) -> list[Failure]:
    expected = snippet.expects.raises
    if observed.ending == "finished" and expected is None:
        return []
    if observed.ending == "raised" and observed.detail == expected:
        return []
    statement = f"{_STATEMENTS[observed.ending]}: {observed.detail}".removesuffix(": ")
    if expected is not None:
        statement += f'; declared raises="{expected}"'
    tail = observed.output.rstrip("\n").splitlines()[-6:] if observed.ending == "raised" else []
    kind = "expectation" if expected is not None else "ending"
    return [_failure(kind, snippet, statement, tail)]


def _expectations(snippet: Snippet, record: RunRecord) -> list[Failure]:
    # What a run that was cut short counted says nothing.
    if record.observed.ending not in ("finished", "raised"):
        return []
    expects, books = snippet.expects, record.books
    measured = {
        "graphs": books.graphs,
        "breaks": len(books.breaks),
        "recompiles": books.recompiles,
    }
    reasons = {
        "breaks": [f"{b.file}:{b.line} {b.reason}".rstrip() for b in books.breaks],
        "recompiles": [
            f"{c.compile_id} {c.recompile_reason}" for c in books.compiles if c.recompile_reason
        ],
    }
    return [
        _failure(
            "expectation",
            snippet,
            f'declared {name}="{getattr(expects, name)}", measured {count}',
            reasons.get(name, []),
        )
        for name, count in measured.items()
        if getattr(expects, name) not in (None, count)
    ]


def _parity(snippet: Snippet, record: RunRecord) -> list[Failure]:
    audit = record.audit
    if audit is None:
        return []  # Its ending has failed already.
    found = differences(audit.calls)
    if snippet.expects.diverges is None:
        failures = [_failure("divergence", snippet, one.headline, one.details) for one in found]
    else:
        failures = _declared(snippet, audit, found)
    failures += [
        _failure(
            "disturbed",
            snippet,
            f"the audit failed on call {call.number} of {call.callable}: {call.detail}",
        )
        for call in audit.calls
        if call.verdict == "audit failed"
    ]
    # A divergence that fails the build explains a disturbance; a declared one excuses none.
    if audit.disturbed and (snippet.expects.diverges is not None or not found):
        failures.append(
            _failure("disturbed", snippet, f"the audit disturbed this snippet: {audit.disturbed}")
        )
    refused = any(call.verdict == "refused" for call in audit.calls)
    if record.books.graphs and not audit.checked and not refused:
        failures.append(
            _failure("unchecked", snippet, "compiled something, and no call of it was checked")
        )
    elif snippet.expects.graphs != 0:
        failures += [
            _failure(
                "unchecked",
                snippet,
                f"no call of {name} was compared: {why} "
                '(declare graphs="0" if nothing compiled is the point)',
            )
            for name, why in never_compared(audit.calls)
        ]
    return failures


def _declared(snippet: Snippet, audit: Audit, found: list[Found]) -> list[Failure]:
    """What fails where a fence declares `diverges`: the differences are not those."""
    expected = snippet.expects.diverges or ()
    declared = f'declared diverges="{" ".join(expected)}", measured '
    names = dict.fromkeys(one.difference.name for one in found)
    told = [line for one in found for line in (one.headline, *one.details)]
    if not found:
        return [_failure("expectation", snippet, f"{declared}nothing")]
    if expected == ("rng",):
        if audit.only_random:
            return []
        return [
            _failure(
                "expectation",
                snippet,
                f"{declared}a difference that stays when Inductor draws random numbers as eager "
                "does (fallback_random)",
                told,
            )
        ]
    if names.keys() == set(expected):
        return []
    surplus = [name for name in names if name not in expected]
    missing = [name for name in expected if name not in names]
    facts = [
        f"{label}: {' '.join(some)}"
        for label, some in (("not declared", surplus), ("not found", missing))
        if some
    ]
    return [
        _failure("expectation", snippet, f"{declared}{' '.join(names)} ({'; '.join(facts)})", told)
    ]


class Found(msgspec.Struct, frozen=True):
    """A difference where a run first met it."""

    call: Call
    difference: Difference
    again: list[str]
    """A line on the later calls that show it too, if there are any."""

    @property
    def headline(self) -> str:
        return _headline(self.call, self.difference)

    @property
    def sizes(self) -> list[str]:
        return _sizes(self.difference)

    @property
    def details(self) -> list[str]:
        """All that is known beside the headline, a line each."""
        origin = self.difference.origin
        return [*self.sizes, *self.again, *(locate.lines(origin) if origin else [])]


def divergences(calls: list[Call]) -> list[tuple[str, list[str]]]:
    """Headline and further lines of each difference in the calls, once per callable."""
    return [(one.headline, one.details) for one in differences(calls)]


def differences(calls: list[Call]) -> list[Found]:
    """Every difference that an audit met, once."""
    seen: dict[tuple[int, int, str, str], list[tuple[Call, Difference]]] = {}
    for call in calls:
        for difference in call.differences:
            key = (call.process, call.callable_index, difference.path, difference.kind)
            seen.setdefault(key, []).append((call, difference))
    return [
        Found(*met[0], [f"also in call {', '.join(str(call.number) for call, _ in met[1:])}"])
        if len(met) > 1
        else Found(*met[0], [])
        for met in seen.values()
    ]


def undeclared(snippet: Snippet, record: RunRecord) -> list[tuple[Call, Difference]]:
    """Differences that nobody declared, where they were first met."""
    declared = snippet.expects.diverges or ()
    if record.audit is None or "rng" in declared:
        return []  # Where random numbers may differ, so may everything else.
    return [
        (one.call, one.difference)
        for one in differences(record.audit.calls)
        if one.difference.name not in declared
    ]


def never_compared(calls: list[Call]) -> list[tuple[str, str]]:
    """Callables of which no call was compared with eager, and the verdicts they got instead."""
    verdicts: dict[tuple[int, int], tuple[str, set[str]]] = {}
    for call in calls:
        key = (call.process, call.callable_index)
        verdicts.setdefault(key, (call.callable, set()))[1].add(call.verdict)
    return [
        (name, " and ".join(sorted(seen)))
        for name, seen in verdicts.values()
        if seen <= {"ran eager", "not comparable"}
    ]


def _headline(call: Call, difference: Difference) -> str:
    where = f"call {call.number} of {call.callable}: {difference.path}"
    facts = " ".join(filter(None, (difference.dtype, difference.shape)))
    message = difference.message or f"{difference.kind} differs"
    return f"{where} diverges from eager ({difference.kind}): {message}" + (
        f" [{facts}]" if facts else ""
    )


def _sizes(difference: Difference) -> list[str]:
    lines = []
    if difference.eager or difference.compiled:
        at = f"at {difference.index}: " if difference.index else ""
        line = f"{at}eager {difference.eager}, compiled {difference.compiled}"
        lines.append(line + (f", float64 {difference.float64}" if difference.float64 else ""))
    if difference.max_ulp is not None:
        lines.append(
            f"largest difference: {difference.max_absolute:.3g} absolute, "
            f"{difference.max_relative:.3g} relative, {difference.max_ulp:.3g} ULP"
        )
    if difference.rule:
        lines.append(f"rule: {difference.rule}")
    return lines


def judge_claims(claims: list[tuple[Place, Claim]], required: bool) -> list[Failure]:
    """The claims that fail: broken ones, and undecided ones where claims are `required`."""
    return [
        Failure("claim", place, "", _claim_message(claim))
        for place, claim in claims
        if claim.outcome == "broken" or (required and claim.outcome == "undecided")
    ]


def _claim_message(claim: Claim) -> str:
    raw = "" if claim.value is None or str(claim.value) == claim.shown else f" ({claim.value!r})"
    reason = f" ({claim.reason})" if claim.reason else ""
    return (
        f"{{{{ {claim.expression} }}}}: the claim is {claim.outcome}{reason}: "
        f"measured {claim.shown}{raw}, claimed {claim.bound}"
    )


def count_claims(claims: list[tuple[Place, Claim]]) -> dict[str, int]:
    """How many there are of each outcome."""
    outcomes = [claim.outcome for _, claim in claims]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


def claims_line(claims: list[tuple[Place, Claim]]) -> str:
    """The line on claims at the end of a build."""
    n, counts = len(claims), count_claims(claims)
    return (
        f"{n} claim{'s' * (n != 1)}: {counts['holds']} hold{'s' * (counts['holds'] == 1)}, "
        f"{counts['broken']} broken, {counts['undecided']} undecided"
    )


def text(failures: list[Failure]) -> str:
    """The list a person reads at the end of a failed build."""
    lines = [f"{len(failures)} failure{'s' * (len(failures) != 1)}"]
    for failure in sorted(failures, key=lambda f: f.place):
        name = f" {failure.snippet}:" if failure.snippet else ""
        lines.append(f"  {failure.place}:{name} {failure.message}")
        lines += [f"      {detail}" for detail in failure.details]
    return "\n".join(lines)


def interrupted(finished: int, of: int) -> str:
    """What a person reads who has interrupted a build.

    >>> interrupted(1, 3)
    'Interrupted: 1 of 3 snippets finished, and the results are kept'
    """
    return f"Interrupted: {finished} of {of} snippets finished, and the results are kept"


def summary(
    snippets: list[tuple[Snippet, RunRecord | None]],
    failures: list[Failure],
    executed: int,
    facts: Mapping[str, Mapping[str, object]],
    claims: list[tuple[Place, Claim]],
) -> dict[str, object]:
    """`report.json`: the verdict on every declared fence, for machines.

    `facts` are the build's own values, which pages quote and which lead here.
    """
    failed = {(failure.place, failure.snippet) for failure in failures}
    return {
        "passed": not failures,
        "declared": len(snippets),
        "executed_now": executed,
        **facts,
        "snippets": [
            {
                "snippet": snippet.name,
                "page": snippet.place.page,
                "line": snippet.place.line,
                "verdict": verdict(snippet, record, (snippet.place, snippet.name) in failed),
                "diverges": list(snippet.expects.diverges or ()),
                "upstream": snippet.expects.upstream,
                "record": f"records/{file_name(snippet)}" if record else None,
                "graphs": record.books.graphs if record else None,
                "breaks": len(record.books.breaks) if record else None,
                "recompiles": record.books.recompiles if record else None,
                "calls_checked": record.audit.checked if record and record.audit else 0,
                "calls_total": record.audit.calls_total if record and record.audit else 0,
                "max_ulp": record.audit.max_ulp if record and record.audit else None,
            }
            for snippet, record in snippets
        ],
        "claims": {
            **count_claims(claims),
            "list": [
                {"page": place.page, "line": place.line, **msgspec.to_builtins(claim)}
                for place, claim in claims
            ],
        },
        "failures": [msgspec.to_builtins(failure) for failure in failures],
    }


def encode(summary: dict[str, object]) -> bytes:
    """JSON. NaN and infinities, which JSON does not have, become null."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n"


def verdict(snippet: Snippet, record: RunRecord | None, failed: bool) -> str:
    """What to call a snippet: failed, not run here, diverges as declared, agrees, refused,
    nothing compiled."""
    if record is None:
        return "failed" if failed else "not run here"
    if failed:
        return "failed"
    if snippet.expects.diverges:
        return DECLARED
    if record.audit and record.audit.checked:
        return "agrees"
    if record.audit and any(call.verdict == "refused" for call in record.audit.calls):
        return "refused"
    return "nothing compiled"


def file_name(snippet: Snippet) -> str:
    """Path of a snippet's record below the site's records folder."""
    return f"{snippet.name.replace('#', '-')}.json"
