"""Runs one snippet: an observed child, then an audited one, and makes the record of both."""

from __future__ import annotations

import contextlib
import datetime
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import filelock
import msgspec

from measured import books, events, locate, machine, masking, process, reproducer, toolchain, warm
from measured.child import Job, Target
from measured.constants import (
    FILE_BYTES,
    MEMORY_BYTES,
    OUTPUT_BYTES,
    REPRODUCER_SECONDS,
    TIMEOUT_SECONDS,
)
from measured.record import RULES, SCHEMA, Audit, Call, Conditions, Origin, Process, RunRecord
from measured.snippets import SEED_VARIABLE, Snippet

AUDIT_PATIENCE = 4.0
"""How many times the observed limit the audited child may take: it runs checked calls twice."""


FORKING = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Environment of a process that runs the program in forks of itself: no pool of workers each."""


@contextlib.contextmanager
def measurement_lock() -> Iterator[None]:
    """One child at a time on this machine: other builds, checkouts and users wait here."""
    path = Path(tempfile.gettempdir()) / "torch-compile-measured.lock"
    with filelock.FileLock(path, mode=0o666):
        yield


def parent(snippets: int) -> contextlib.AbstractContextManager[warm.Parent | None]:
    """What is to fork the audited children of so many snippets; None where it would not pay."""
    pays = snippets > 1 and warm.is_possible()
    return warm.Parent(_seed()) if pays else contextlib.nullcontext()


def run(snippet: Snippet, key: str, cache: Path, parent: warm.Parent | None = None) -> RunRecord:
    """Observe and audit one snippet, under the measurement lock.

    The audited child is one of `parent`, if there is one and the snippet suits it. Never raises
    for what the snippet does.
    """
    timeout = snippet.expects.timeout or TIMEOUT_SECONDS
    with _folder() as folder:
        toolchain.write_bytecode(_import)
        warmed = _prepare(snippet, folder, cache / "toolchain")
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        observed, seen = _child(snippet, "observe", folder, timeout)
        audited = None
        if observed.ending in ("finished", "raised"):
            toolchain.clear(folder)
            audited = _audit(snippet, folder, timeout, observed, seen, warmed, parent)
    finished = _last(seen, events.Finished)
    return RunRecord(
        schema=SCHEMA,
        key=key,
        snippet=snippet.name,
        source=snippet.source,
        options={name: str(value) for name, value in _declared(snippet).items()},
        date=date,
        machine=machine.describe(),
        observed=observed,
        attempts=1,
        conditions=Conditions(0.0, 0.0, 0.0, 0, None),
        books=books.books(seen, str(folder / "run")),
        warm=None,
        values=finished.values if finished else {},
        timings=books.timings(seen),
        figures=[event.figure for event in seen if isinstance(event, events.Drawn)],
        audit=audited,
    )


def _audit(
    snippet: Snippet,
    folder: Path,
    timeout: float,
    observed: Process,
    seen: list[events.Event],
    warmed: Path | None,
    parent: warm.Parent | None,
) -> Audit:
    """Audit the snippet; with eager's random streams where Inductor replaced a random operation,
    unless `rng` is declared."""

    def once(fallback_random: bool, parent: warm.Parent | None = None) -> Audit:
        audited, heard = _child(
            snippet,
            "audit",
            folder,
            timeout * AUDIT_PATIENCE,
            fallback_random=fallback_random,
            parent=parent,
        )
        made = audit(audited, heard, observed, seen, fallback_random)
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
        return undisturbed(_last(seen, events.Drew) is not None)
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
    timeout = snippet.expects.timeout or TIMEOUT_SECONDS
    fallback_random = record.audit.fallback_random
    with _folder() as folder:
        _prepare(snippet, folder, cache / "toolchain")

        def again(stage: str, seconds: float) -> list[Call] | None:
            limit = min(timeout * AUDIT_PATIENCE, seconds)
            ended, heard = _child(snippet, "audit", folder, limit, fallback_random, stage)
            return None if ended.ending == "timeout" else calls_of(heard)

        def bisect(target: Target, stage: str, seconds: float) -> events.Bisected | None:
            ended, heard = _child(
                snippet, "bisect", folder, seconds, fallback_random, stage, target
            )
            if ended.ending == "timeout":
                return None
            failed = events.Bisected("", f"the bisection failed: {ended.output[-200:]}")
            return _last(heard, events.Bisected) or failed

        origins = locate.locate(found, again, bisect)
        for call, difference in found:
            target = locate.target(call, difference)
            path = cache / "reproducers" / reproducer.file_name(snippet.name, target, difference)
            text = reproducer.write(
                snippet.source,
                _file_name(snippet),
                call,
                difference,
                origin=origins[target],
                fallback_random=fallback_random,
                seed=_seed(),
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


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="measured-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(snippet: Snippet, folder: Path, kept_in: Path) -> Path | None:
    """Make the caches with which a snippet starts. Returns where they were copied from."""
    warmed = None if snippet.expects.fresh else toolchain.warm(kept_in, _probe)
    toolchain.prepare(folder, warmed)
    if "matplotlib" in snippet.source:
        toolchain.list_fonts(folder, kept_in, _probe)
    return warmed


def _import(program: str) -> None:
    with _folder() as folder:
        _probe(program, folder)


def _probe(program: str, folder: Path) -> bool:
    """Run a program of the toolchain's in `folder`. Returns whether it succeeded."""
    toolchain.prepare(folder, None)
    outcome = process.run(
        ["-c", program],
        folder=folder,
        env=process.environment(folder, toolchain.environment(folder)),
        timeout_seconds=10 * TIMEOUT_SECONDS,
        output_bytes=OUTPUT_BYTES,
    )
    return outcome.status == 0


def _file_name(snippet: Snippet) -> str:
    return f"{snippet.name.rsplit('/', 1)[-1].replace('#', '_')}.py"


def _seed() -> int:
    return int(os.environ.get(SEED_VARIABLE, "0"))


def _child(
    snippet: Snippet,
    mode: str,
    folder: Path,
    timeout: float,
    fallback_random: bool = False,
    stage: str = "",
    target: Target | None = None,
    parent: warm.Parent | None = None,
) -> tuple[Process, list[events.Event]]:
    """Run the snippet once in a folder of its own below `folder`: in a new interpreter, or in a
    child of `parent`."""
    # The same name in both runs: Dynamo's and Inductor's cache keys hold the script's path.
    home = folder / "run"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    script = home / _file_name(snippet)
    script.write_text(snippet.source + "\n", encoding="utf-8")
    log_path = parent.events if parent else folder / f"{mode}.events"
    log_path.unlink(missing_ok=True)
    job = Job(
        mode=mode,
        script=str(script),
        events=str(log_path),
        memory_bytes=MEMORY_BYTES,
        file_bytes=FILE_BYTES,
        fallback_random=fallback_random,
        seed=_seed(),
        lower_anew=mode == "bisect",
        stage=stage,
        target=target,
    )
    job_path = folder / f"{mode}.job"
    job_path.write_bytes(msgspec.json.encode(job))
    outcome = process.run(
        ["-m", "measured.bisection" if mode == "bisect" else "measured.program"],
        folder=home,
        env={**warm.environment(home, job_path, folder), **(FORKING if mode == "bisect" else {})},
        timeout_seconds=timeout,
        output_bytes=OUTPUT_BYTES,
        starter=parent.fork if parent else None,
    )
    log = events.read(job.events)
    ending, detail = how_it_ended(outcome, log, timeout)
    return (
        Process(
            ending=ending,
            detail=detail,
            wall_seconds=outcome.wall_seconds,
            cpu_seconds=outcome.cpu_seconds,
            peak_memory_bytes=outcome.peak_memory_bytes,
            output=masking.clean(outcome.output, str(home)),
        ),
        log,
    )


def how_it_ended(
    outcome: process.Outcome, log: list[events.Event], timeout: float
) -> tuple[str, str]:
    """Ending and detail of a child: `record.ENDINGS`."""
    if outcome.stopped == "timeout":
        return "timeout", f"still running after {timeout:g} s"
    if outcome.stopped == "output limit":
        return "output limit", f"printed more than {OUTPUT_BYTES >> 20} MiB"
    status = outcome.status or 0
    if status < 0:
        return "signal", _signal_name(-status)
    if raised := _last(log, events.Raised):
        return "raised", raised.exception
    if _last(log, events.Finished) and status == 0:
        return "finished", ""
    if exited := _last(log, events.Exited):
        return "ended early", f"sys.exit({exited.status}) before its last line"
    return "ended early", f"left with status {status} before its last line"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last(log: Iterable[events.Event], kind: type) -> events.Event | None:
    return next((event for event in reversed(list(log)) if isinstance(event, kind)), None)


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
        [msgspec.structs.replace(e.call, process=pids.index(e.pid)) for e in called]
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
