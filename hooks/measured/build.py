"""One build: pages are read, what is missing is run, pages ask for results, the build is judged.

Knows nothing of MkDocs; `hooks/site.py` passes plain text in and takes HTML out.
"""

from __future__ import annotations

import functools
import os
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from measured import chart_data, constants, evidence, machine, noise, report, store, values
from measured.claims import Claim
from measured.pages import ChartUse, Page
from measured.progress import Tell
from measured.record import RunRecord
from measured.report import Failure
from measured.results import Job, Results
from measured.snippets import Mistake, Place, Snippet, content_key

_Fence = TypeVar("_Fence", Snippet, ChartUse)

RUNNING = "running"
"""What a page says in place of a value while its snippet runs, or waits for others."""

NOT_RUN = "not run here"
"""What a page says in place of a value, and why a claim on it is undecided."""


class Shown(msgspec.Struct, frozen=True):
    """A value as a page quotes it."""

    name: str
    """Of the snippet, or one of `Build.built_in`."""
    text: str | None
    """None where the snippet was not run here."""
    claims: list[Claim]


def audit_cost(records: Iterable[RunRecord]) -> float:
    """Median of how many times the wall time of the observed child the audited child took."""
    ratios = [
        record.audit.process.wall_seconds / record.observed.wall_seconds
        for record in records
        if record.audit
    ]
    return statistics.median(ratios) if ratios else 0.0


class Build:
    """State of one build, from the reading of the pages to the verdict."""

    def __init__(self, results: Results, docs: Path | None = None) -> None:
        self._results = results
        self._docs = docs
        self._pages: dict[str, Page] = {}
        self._chosen: Collection[str] = ()
        self._records: dict[str, RunRecord] = {}
        self._failures: list[Failure] = []
        self._shown: Counter[str] = Counter()
        self._charts_shown: Counter[str] = Counter()
        self.waiting: Mapping[str, int] = {}
        """Names of snippets whose result is still to come -> how many run before it."""

    built_in = ("build", "machine", "rule", *evidence.NAMES)
    """Names of values that are not a snippet's."""

    tables = ("build.differences", *evidence.TABLES)
    """What a page may quote, alone in a paragraph, as a table: made from this build's records, or
    from a committed record."""

    @property
    def executed(self) -> int:
        """Snippets that ran for this build."""
        return self._results.executed

    @property
    def snippets(self) -> list[Snippet]:
        return [snippet for page in self._pages.values() for snippet in page.snippets]

    @property
    def charts(self) -> list[ChartUse]:
        return [use for page in self._pages.values() for use in page.charts]

    @property
    def drawings(self) -> Path:
        """Folder for what was drawn once."""
        return self._results.cache / "charts"

    def record(self, snippet: Snippet) -> RunRecord | None:
        return self._records.get(snippet.name)

    @property
    def pairs(self) -> list[tuple[Snippet, RunRecord | None]]:
        return [(snippet, self.record(snippet)) for snippet in self.snippets]

    @property
    def judged(self) -> list[tuple[Snippet, RunRecord | None]]:
        """The pairs of the pages that are built."""
        return [pair for pair in self.pairs if pair[0].place.page in self._chosen]

    def read(self, pages: Iterable[Page], chosen: Collection[str] | None = None) -> list[Failure]:
        """Step 1. Takes what each page declares. Returns the authors' mistakes.

        `chosen`: the pages that are built, if not all of them are. Of the others, values may be
        quoted where a result is stored, and nothing runs and nothing fails.
        """
        self._pages = {page.path: page for page in pages}
        self._chosen = self._pages.keys() if chosen is None else chosen
        for page in self._pages.values():
            for problem in page.problems:
                self._fail("mistake", problem.place, problem.message)
        first: dict[str, Place] = {}
        for snippet in self.snippets:
            if snippet.name in first:
                self._fail(
                    "mistake",
                    snippet.place,
                    f"{snippet.name} is included a second time; it stands at {first[snippet.name]}",
                )
            first.setdefault(snippet.name, snippet.place)
        self._read_charts(first)
        return list(self._failures)

    def _read_charts(self, snippets: Mapping[str, Place]) -> None:
        first: dict[str, Place] = {}
        for use in self.charts:
            for name in use.spec.snippets:
                if name not in snippets:
                    self._fail("mistake", use.place, f"of: no snippet {name} runs on this site")
            if use.name in first:
                self._fail(
                    "mistake",
                    use.place,
                    f'another chart of this page is called "{use.spec.title}"; it stands at '
                    f"{first[use.name]}",
                )
            first.setdefault(use.name, use.place)

    def mistakes(self, page: str) -> list[Failure]:
        """What `read` found on one page."""
        return [f for f in self._failures if f.kind == "mistake" and f.place.page == page]

    def order(self, paths: Iterable[str]) -> None:
        """The pages in the order in which their snippets run; those not named come last."""
        named = {path: self._pages[path] for path in paths if path in self._pages}
        self._pages = named | self._pages

    def plan(self) -> list[Job]:
        """Step 2. Looks each snippet up by its key. Returns those that must run, in their order."""
        missing = []
        for name, (snippet, key) in self._keys().items():
            built = snippet.place.page in self._chosen
            if found := self._results.find(key) if built else self._results.stored(key):
                self._records[name] = found
            elif built and (snippet.expects.needs != "cuda" or machine.has_cuda()):
                missing.append((snippet, key))  # Others are shown as "not run here".
        if missing and (obstacle := machine.missing()):
            self._fail("ending", missing[0][0].place, obstacle)
            return []
        return missing

    def execute(self, jobs: Sequence[Job], tell: Tell) -> None:
        """Step 3. Runs what is missing."""
        self._results.make(jobs, tell)
        for snippet, key in jobs:
            if made := self._results.find(key):
                self._records[snippet.name] = made

    def _keys(self) -> dict[str, tuple[Snippet, str]]:
        fingerprint = machine.fingerprint(machine.describe())
        engine = store.engine_version()
        keys: dict[str, tuple[Snippet, str]] = {}
        for snippet in self.snippets:
            key = content_key(snippet, machine=fingerprint, engine=engine, environment=os.environ)
            keys.setdefault(snippet.name, (snippet, key))
        return keys

    def take(self, page: str, source: str) -> Snippet | None:
        """Step 4. The next declared fence of `page`, if `source` is what was declared there.

        None, and a failure, where a fence renders that was not declared, or with other code.
        """
        declared = self._pages[page].snippets if page in self._pages else []
        return self._next(
            declared,
            self._shown,
            page,
            source,
            "the code shown is not the code that was declared to run: either a file changed during "
            "the build, or the fence comes from an included Markdown file, which can not be",
        )

    def take_chart(self, page: str, source: str) -> ChartUse | None:
        """Step 4. The next chart of `page`, as `take` does it."""
        declared = self._pages[page].charts if page in self._pages else []
        return self._next(
            declared,
            self._charts_shown,
            page,
            source,
            "this chart is not the one that was declared here: it comes from an included Markdown "
            "file, which can not be",
        )

    def _next(
        self, declared: Sequence[_Fence], shown: Counter[str], page: str, source: str, message: str
    ) -> _Fence | None:
        """The next of what a page declares, if its source is this; else a failure."""
        index = shown[page]
        shown[page] += 1
        if index < len(declared) and declared[index].source.strip() == source.strip():
            return declared[index]
        place = declared[index].place if index < len(declared) else Place(page, 0)
        self._fail("shown", place, message)
        return None

    def chart(self, use: ChartUse) -> chart_data.Data | None:
        """Step 4. What a chart shows; None if it was not run here, or is a mistake.

        The mistake is filed by `judge`.
        """
        try:
            return chart_data.make(use.spec, self._records)
        except Mistake:
            return None

    def not_drawn(self, place: Place, error: Exception) -> None:
        """Step 4. Drawing what stands there failed, which is an error of ours."""
        self._fail("shown", place, f"could not be drawn: {type(error).__name__}: {error}")

    def value(self, expression: str) -> Shown | None:
        """Step 4. A quoted value and the claims on it; None if there is none.

        The failure is filed by `judge`, which knows the line.
        """
        try:
            return self._quote(values.parse(expression), self._namespace)
        except Mistake:
            return None

    def _quote(
        self, quotation: values.Quotation, namespace: Mapping[str, Mapping[str, Any]]
    ) -> Shown:
        """Raises `Mistake`."""
        name = quotation.name
        if name in self._unrun:
            return Shown(
                name,
                None,
                [
                    Claim(quotation.expression, bound.words, None, NOT_RUN, "undecided", NOT_RUN)
                    for bound in quotation.bounds
                ],
            )
        value, text = values.evaluate(quotation, namespace)
        record = self._records.get(name)
        where = record.machine if record else machine.describe()
        disturbances = noise.reasons(record) if record else []
        return Shown(name, text, values.claims_on(quotation, value, text, where, disturbances))

    @property
    def _unrun(self) -> set[str]:
        return {snippet.name for snippet in self.snippets if not self.record(snippet)}

    @functools.cached_property
    def _namespace(self) -> dict[str, dict[str, Any]]:
        """All that pages may quote, once every result is there that will be."""
        namespace = {name: record.values for name, record in self._records.items()} | self.facts()
        return namespace | self.evidence

    @functools.cached_property
    def evidence(self) -> dict[str, evidence.Record]:
        """The committed records that lie beside the pages, by name."""
        return evidence.read(self._docs)

    def facts(self) -> dict[str, dict[str, Any]]:
        """The build's own values, by the names in `built_in`."""
        namespace: dict[str, dict[str, Any]] = {}
        here = machine.describe()
        audits = [record.audit for record in self._records.values() if record.audit]
        namespace["build"] = {
            "snippets": len(self._records),
            "calls_checked": sum(audit.checked for audit in audits),
            "calls_total": sum(audit.calls_total for audit in audits),
            "graphs": sum(record.books.graphs for record in self._records.values()),
            "compile_seconds": sum(r.books.compile_seconds for r in self._records.values()),
            "divergences": sum(
                call.verdict == "diverges"
                for snippet, record in self.pairs
                if record and record.audit and not snippet.expects.diverges
                for call in record.audit.calls
            ),
            "declared_differences": sum(
                bool(record and snippet.expects.diverges) for snippet, record in self.pairs
            ),
            "audits_forked": sum(audit.forked for audit in audits),
            "remeasured": sum(record.attempts > 1 for record in self._records.values()),
            "noisy": sum(bool(noise.reasons(record)) for record in self._records.values()),
            "audit_cost": audit_cost(self._records.values()),
            "date": max((r.date[:10] for r in self._records.values()), default=""),
        }
        namespace["machine"] = {name: getattr(here, name) for name in here.__struct_fields__}
        namespace["rule"] = {
            name.lower(): value for name, value in vars(constants).items() if name.isupper()
        }
        return namespace

    def judge(self, rendered: Iterable[str], require_claims: bool = False) -> list[Failure]:
        """Step 5. Every failure of the build. `rendered` are the pages that were drawn.

        Undecided claims are failures where `require_claims`.
        """
        failures = list(self._failures)
        for snippet, record in self.judged:
            if record:
                failures += report.judge(snippet, record)
        made, mistakes = self._judge_values()
        failures += mistakes + report.judge_claims(made, require_claims)
        failures += self._charts_without_data()
        for page_path in set(rendered):
            failures += self._left_out(page_path)
        return failures

    @property
    def claims(self) -> list[tuple[Place, Claim]]:
        """Every claim of the pages that could be judged."""
        return self._judge_values()[0]

    def _judge_values(self) -> tuple[list[tuple[Place, Claim]], list[Failure]]:
        """The claims of all pages, and the authors' mistakes."""
        namespace = self._namespace
        made: list[tuple[Place, Claim]] = []
        mistakes: list[Failure] = []
        for use in (use for page in self._built for use in page.values):
            of = use.expression.partition(".")[0].strip()
            if of in evidence.NAMES and of not in self.evidence:
                missing = f"there is no {evidence.file_name(of)} beside the pages"
                message = f"{{{{ {use.expression} }}}}: {missing}"
                mistakes.append(Failure("mistake", use.place, "", message))
                continue
            if use.expression in self.tables:
                continue
            quotation = None
            try:
                quotation = values.parse(use.expression)
                shown = self._quote(quotation, namespace)
            except Mistake as mistake:
                # A snippet that failed has no values, and has been reported once already.
                if quotation is None or quotation.name not in self._broken:
                    mistakes.append(Failure("mistake", use.place, "", str(mistake)))
            else:
                made += [(use.place, claim) for claim in shown.claims]
        return made, mistakes

    @property
    def _built(self) -> list[Page]:
        """The pages that are built."""
        return [page for path, page in self._pages.items() if path in self._chosen]

    @property
    def _broken(self) -> set[str]:
        """Snippets that left no values, which has been told once already."""
        return {
            name
            for name, record in self._records.items()
            if record.observed.ending not in ("finished", "raised")
        }

    def _charts_without_data(self) -> list[Failure]:
        failures = []
        for use in (use for page in self._built for use in page.charts):
            try:
                chart_data.make(use.spec, self._records)
            except Mistake as mistake:
                if not self._broken.intersection(use.spec.snippets):
                    failures.append(Failure("mistake", use.place, "", str(mistake)))
        return failures

    def _left_out(self, page_path: str) -> list[Failure]:
        if page_path not in self._pages:
            return []
        page = self._pages[page_path]
        message = "was declared and never rendered"
        return [
            Failure("shown", snippet.place, snippet.name, message)
            for snippet in page.snippets[self._shown[page_path] :]
        ] + [
            Failure("shown", use.place, "", f"the chart {message}")
            for use in page.charts[self._charts_shown[page_path] :]
        ]

    def _fail(self, kind: str, place: Place, message: str) -> None:
        if place.page not in self._chosen:
            return
        self._failures.append(Failure(kind, place, "", message))
