"""Runs one snippet: an observed child, then an audited one, and makes the record of both."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import filelock
import msgspec

from measured import (
    books,
    children,
    events,
    locate,
    machine,
    masking,
    measure,
    process,
    reproducer,
    toolchain,
    warm,
)
from measured.child import Target
from measured.constants import OUTPUT_BYTES, REPRODUCER_SECONDS, TIMEOUT_SECONDS
from measured.record import RULES, SCHEMA, Audit, Books, Call, Origin, Process, RunRecord
from measured.snippets import Snippet

AUDIT_PATIENCE = 4.0
"""How many times the observed limit the audited child may take: it runs checked calls twice."""


@contextlib.contextmanager
def measurement_lock() -> Iterator[None]:
    """One build measures, or audits, at a time on this machine: other builds, checkouts and users
    wait here."""
    path = Path(tempfile.gettempdir()) / "torch-compile-measured.lock"
    with filelock.FileLock(path, mode=0o666):
        yield


@dataclasses.dataclass(frozen=True)
class Begun:
    """A snippet that has been observed and waits to be audited."""

    snippet: Snippet
    key: str
    folder: Path
    """Where its children run; its Inductor cache holds what the observed one compiled."""
    warmed: Path | None
    """What an unused cache is a copy of."""
    observed: measure.Observed
    warm: Books | None

    def finish(self, parent: warm.Parent | None = None) -> RunRecord:
        """Audit it: in a child of `parent`, if there is one and the snippet suits it.

        Beside other audits, never beside a measurement.
        """
        observed, snippet = self.observed, self.snippet
        audited = None
        if observed.process.ending in ("finished", "raised"):
            toolchain.clear(self.folder)
            audited = _audit(snippet, self.folder, observed, self.warmed, parent)
        finished = children.last(observed.events, events.Finished)
        return RunRecord(
            schema=SCHEMA,
            key=self.key,
            snippet=snippet.name,
            source=snippet.source,
            options={name: str(value) for name, value in _declared(snippet).items()},
            date=observed.date,
            machine=machine.describe(),
            observed=observed.process,
            attempts=observed.attempts,
            conditions=observed.conditions,
            books=books.books(observed.events, str(self.folder / "run")),
            warm=self.warm,
            values=finished.values if finished else {},
            timings=observed.timings,
            figures=[e.figure for e in observed.events if isinstance(e, events.Drawn)],
            audit=audited,
        )


@contextlib.contextmanager
def begin(snippet: Snippet, key: str, cache: Path) -> Iterator[Begun]:
    """Observe one snippet, with nothing beside it. Never raises for what the snippet does."""
    with children.temporary_folder() as folder:
        toolchain.write_bytecode(cache / "toolchain", children.import_all)
        warmed = _warmed(snippet, folder, cache)
        observed = measure.observe(snippet, folder, _timeout(snippet), warmed)
        again = snippet.expects.warm and observed.process.ending in ("finished", "raised")
        warm_books = measure.observe_warm(snippet, folder, _timeout(snippet)) if again else None
        yield Begun(snippet, key, folder, warmed, observed, warm_books)


def run(snippet: Snippet, key: str, cache: Path, parent: warm.Parent | None = None) -> RunRecord:
    """Observe and audit one snippet, under the measurement lock."""
    with begin(snippet, key, cache) as begun:
        return begun.finish(parent)


def _timeout(snippet: Snippet) -> float:
    return snippet.expects.timeout or TIMEOUT_SECONDS


def _warmed(snippet: Snippet, folder: Path, cache: Path) -> Path | None:
    """What the caches of a snippet's children are to be copies of; what it plots with is in
    `folder` at once."""
    kept_in = cache / "toolchain"
    if "matplotlib" in snippet.source:
        toolchain.list_fonts(folder, kept_in, children.probe)
    return None if snippet.expects.fresh else toolchain.warm(kept_in, children.probe)


def _audit(
    snippet: Snippet,
    folder: Path,
    observed: measure.Observed,
    warmed: Path | None,
    parent: warm.Parent | None,
) -> Audit:
    """Audit the snippet; with eager's random streams where Inductor replaced a random operation,
    unless `rng` is declared."""

    def once(fallback_random: bool, parent: warm.Parent | None = None) -> Audit:
        audited, heard, _ = children.run(
            snippet,
            "audit",
            folder,
            _timeout(snippet) * AUDIT_PATIENCE,
            fallback_random=fallback_random,
            parent=parent,
        )
        made = audit(audited, heard, observed.process, observed.events, fallback_random)
        return msgspec.structs.replace(made, forked=parent is not None)

    def undisturbed(fallback_random: bool) -> Audit:
        # Inductor is told how to draw before it is imported.
        suits = parent and not fallback_random and warm.suits(snippet.source) and parent.start()
        audited = once(fallback_random, parent if suits else None)
        if audited.disturbed:
            # A warm start, or a warm cache, skips work that may print, such as a warning of
            # Inductor's lowering.
            toolchain.prepare(folder, warmed)
            audited = once(fallback_random)
        return audited

    if "rng" not in (snippet.expects.diverges or ()):
        return undisturbed(children.last(observed.events, events.Drew) is not None)
    without = undisturbed(False)
    agrees = {"agrees"} == {call.verdict for call in once(True).calls}
    return msgspec.structs.replace(without, only_random=agrees)


def explain(
    snippet: Snippet, record: RunRecord, found: list[locate.Found], cache: Path
) -> RunRecord:
    """The record, with where in the compiler these differences arise and what reproduces each.

    Runs the snippet again and again, under the measurement lock.
    """
    if record.audit is None or not found:
        return record
    timeout = _timeout(snippet)
    fallback_random = record.audit.fallback_random
    with children.temporary_folder() as folder:
        toolchain.prepare(folder, _warmed(snippet, folder, cache))

        def again(stage: str, seconds: float) -> list[Call] | None:
            limit = min(timeout * AUDIT_PATIENCE, seconds)
            ended, heard, _ = children.run(snippet, "audit", folder, limit, fallback_random, stage)
            return None if ended.ending == "timeout" else calls_of(heard)

        def bisect(target: Target, stage: str, seconds: float) -> events.Bisected | None:
            ended, heard, _ = children.run(
                snippet, "bisect", folder, seconds, fallback_random, stage, target
            )
            if ended.ending == "timeout":
                return None
            failed = events.Bisected("", f"the bisection failed: {ended.output[-200:]}")
            return children.last(heard, events.Bisected) or failed

        origins = locate.locate(found, again, bisect)
        for call, difference in found:
            target = locate.target(call, difference)
            path = cache / "reproducers" / reproducer.file_name(snippet.name, target, difference)
            text = reproducer.write(
                snippet.source,
                children.file_name(snippet),
                call,
                difference,
                origin=origins[target],
                fallback_random=fallback_random,
                seed=children.seed_of_build(),
            )
            environment = process.environment(folder, toolchain.environment(folder))
            origins[target] = written(path, text, origins[target], folder, environment)
    audited = msgspec.structs.replace(record.audit, calls=locate.put(record.audit.calls, origins))
    return msgspec.structs.replace(record, audit=audited)


def written(
    path: Path, text: str, origin: Origin, folder: Path, environment: dict[str, str]
) -> Origin:
    """The origin, with a reproducer at `path`: written, and tried in `folder`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    outcome = process.run(
        [str(path.absolute())],
        folder=folder,
        env=environment,
        timeout_seconds=REPRODUCER_SECONDS,
        output_bytes=OUTPUT_BYTES,
    )
    reproduced = None if outcome.status is None else outcome.status == 1
    return msgspec.structs.replace(origin, reproducer=str(path), reproduced=reproduced)


def _declared(snippet: Snippet) -> dict[str, object]:
    declared = msgspec.structs.asdict(snippet.expects)
    # Not `in (None, False)`: a declared 0 is equal to False.
    return {k: v for k, v in declared.items() if v is not None and v is not False}


def audit(
    audited: Process,
    heard: list[events.Event],
    observed: Process,
    seen: list[events.Event],
    fallback_random: bool,
) -> Audit:
    """Verdicts from the audit child's events, and whether the audit changed what happened."""
    totals = {event.pid: event.calls for event in heard if isinstance(event, events.Counted)}
    return Audit(
        process=audited,
        calls=calls_of(heard),
        calls_total=sum(totals.values()),
        fallback_random=fallback_random,
        only_random=None,
        disturbed=disturbance(observed, audited) or recount(seen, heard),
    )


def calls_of(heard: Iterable[events.Event]) -> list[Call]:
    """The audited calls of all processes, numbered by process, one entry each."""
    called = [event for event in heard if isinstance(event, events.Called)]
    pids = list(dict.fromkeys(event.pid for event in called))
    return merge_gradients(
        [
            msgspec.structs.replace(
                event.call,
                process=pids.index(event.pid),
                detail=masking.installed(event.call.detail),
            )
            for event in called
        ]
    )


_SEVERITY = ("ran eager", "not comparable", "refused", "agrees", "audit failed", "diverges")


def merge_gradients(calls: list[Call]) -> list[Call]:
    """One entry per call: the verdict on its gradients, which comes later, joins the first."""
    merged: dict[tuple[int, int, int], Call] = {}
    for call in calls:
        key = (call.process, call.callable_index, call.number)
        if key not in merged:
            merged[key] = call
            continue
        first = merged[key]
        merged[key] = msgspec.structs.replace(
            first,
            verdict=max(first.verdict, call.verdict, key=_SEVERITY.index),
            differences=[*first.differences, *call.differences],
            max_ulp=max(first.max_ulp, call.max_ulp),
            detail=first.detail or call.detail,
            rule=max(first.rule, call.rule, key=RULES.index),
        )
    return list(merged.values())


def disturbance(observed: Process, audited: Process) -> str:
    """How the audited run differs from the observed one where it must not, or an empty text."""
    if (observed.ending, observed.detail) != (audited.ending, audited.detail):
        before = f"{observed.ending} {observed.detail}".strip()
        after = f"{audited.ending} {audited.detail}".strip()
        return f"it {before} when observed and {after} when audited"
    before_lines = masking.masked(observed.output).splitlines()
    after_lines = masking.masked(audited.output).splitlines()
    for line in range(max(len(before_lines), len(after_lines))):
        left = before_lines[line] if line < len(before_lines) else "nothing"
        right = after_lines[line] if line < len(after_lines) else "nothing"
        if left != right:
            return f"output line {line + 1} is {left!r} when observed and {right!r} when audited"
    return ""


def recount(seen: list[events.Event], heard: list[events.Event]) -> str:
    """How what the compiler did under audit differs from what it did without, or an empty text."""
    before, after = (books.books(log, "") for log in (seen, heard))
    for name, left, right in (
        ("graphs", before.graphs, after.graphs),
        ("breaks", len(before.breaks), len(after.breaks)),
        ("recompilations", before.recompiles, after.recompiles),
    ):
        if left != right:
            return f"{left} {name} when observed and {right} when audited"
    return ""
