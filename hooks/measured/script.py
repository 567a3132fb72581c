"""Audits a script of anyone's: runs it as Python would, with the audit attached, and judges it.

The first half is pure: what a run showed -> exit code, verdict, text. The second half runs.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from measured import events, locate, machine, process, report, reproducer
from measured.child import Job, Target
from measured.children import FORKING
from measured.record import RULES, Call, Origin
from measured.run import calls_of, written

AGREES, DIVERGES, FAILED, NO_VERDICT = 0, 1, 2, 3
USAGE, BROKEN, TIMEOUT, INTERRUPTED = 64, 70, 124, 130
"""Exit codes. Those of the second line say nothing about the script: the command was mistyped, is
itself at fault, or was cut short. 64 and 70 are sysexits.h's, 124 is that of `timeout`, 130 that of
a shell after Ctrl-C."""


class Run(msgspec.Struct, frozen=True):
    """What one run of the script showed."""

    status: int | None
    """Its exit status; negative for a signal; None if the command ended it."""
    stopped: str
    """Empty, or what cut it short: timeout, interrupted."""
    calls: list[Call]
    """The audited ones of all its processes."""
    calls_total: int
    drew: bool
    """Inductor compiled a random operation with a stream of its own."""
    fallback_random: bool
    """Inductor was told to draw as eager does."""
    died_of_refusal: bool = False
    """The compiler raised, where eager runs, and the script did not catch it."""

    def with_verdict(self, *verdicts: str) -> list[Call]:
        return [call for call in self.calls if call.verdict in verdicts]

    @property
    def checked(self) -> list[Call]:
        return self.with_verdict("agrees", "diverges")


class Verdict(msgspec.Struct, frozen=True):
    exit_code: int
    name: str
    """agrees, diverges, refused, failed, no verdict, timeout or interrupted."""
    reason: str
    """One line."""


def judge(run: Run) -> Verdict:
    """The verdict on a run. What is found beats what was cut short, which beats what is missing."""
    checked, diverging = run.checked, run.with_verdict("diverges")
    so_far = "no divergence was found until then"
    if diverging:
        many = f"{len(diverging)} of {len(checked)} checked calls"
        verb = "diverges" if len(diverging) == 1 else "diverge"
        return Verdict(DIVERGES, "diverges", f"{many} {verb} from eager")
    if run.stopped == "timeout":
        return Verdict(TIMEOUT, "timeout", f"the script did not end in time; {so_far}")
    if run.stopped == "interrupted":
        return Verdict(INTERRUPTED, "interrupted", f"the script was interrupted; {so_far}")
    if run.status and run.died_of_refusal:
        reason = "the compiler raised an exception that eager does not raise, and the script ended"
        return Verdict(DIVERGES, "refused", f"{reason}; {so_far}")
    if run.status:
        return Verdict(FAILED, "failed", f"the script {_ending(run.status)}; {so_far}")
    if failed := run.with_verdict("audit failed"):
        calls = _calls(failed, "audited call")
        return Verdict(NO_VERDICT, "no verdict", f"the audit itself failed on {calls}")
    if not run.calls:
        return Verdict(NO_VERDICT, "no verdict", "no compiled callable was called")
    if not checked:
        seen = Counter(call.verdict for call in run.calls)
        kinds = ", ".join(f"{count} {verdict}" for verdict, count in seen.items())
        return Verdict(NO_VERDICT, "no verdict", f"no call could be compared with eager: {kinds}")
    verb = "agrees" if len(checked) == 1 else "agree"
    return Verdict(AGREES, "agrees", f"{_calls(checked)} {verb} with eager")


def _calls(calls: list[Call], noun: str = "checked call") -> str:
    return f"{len(calls)} {noun}{'s' * (len(calls) != 1)}"


def _ending(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    with contextlib.suppress(ValueError):
        return f"died of {signal.Signals(-status).name}"
    return f"died of signal {-status}"


def is_undecided(run: Run) -> bool:
    """Whether what is wrong with a run may be no more than streams of random numbers."""
    return (
        run.drew
        and not (run.fallback_random or run.stopped)
        and bool(run.with_verdict("diverges", "not comparable"))
    )


def replaces(second: Run, first: Run) -> bool:
    """Whether a run with eager's random streams answers for the first one: it got as far, and
    compared something. A second run that stumbled over what the first left behind does not."""
    if second.with_verdict("diverges"):
        return True
    return (second.status, second.stopped) == (first.status, first.stopped) and bool(second.checked)


class Outcome(msgspec.Struct, frozen=True):
    """What the command found, for people and for machines."""

    script: str
    arguments: list[str]
    run: Run
    """The run whose verdict counts."""
    runs: int
    """How often the script ran."""

    @property
    def verdict(self) -> Verdict:
        return judge(self.run)


def notes(outcome: Outcome) -> list[str]:
    """What a reader has to know besides the table and the divergences, one line each."""
    run = outcome.run
    found = []
    if is_undecided(run):
        found.append(
            "a random operation was compiled: compiled code draws other numbers than eager, by "
            "design, and a difference may come from that alone; "
            + (
                "the second run, with eager's numbers, did not get as far as the first, so this "
                "verdict is the first one's"
                if outcome.runs == 2
                else "run without --once, or with --fallback-random, to tell the two apart"
            )
        )
    elif outcome.runs == 2:
        found.append(
            "the script ran twice: a random operation was compiled, and the second run, whose "
            "verdict this is, drew the same numbers compiled as in eager"
        )
    for verdict, line in (
        ("audit failed", "the audit failed on call {0.number} of {0.callable}: {0.detail}"),
        ("refused", "call {0.number} of {0.callable} was refused by the compiler: {0.detail}"),
    ):
        found += [line.format(call) for call in run.with_verdict(verdict)]
    found += [
        f"no call of {name} was compared: {why}" for name, why in report.never_compared(run.calls)
    ]
    agreeing = Counter((call.callable, call.detail) for call in run.with_verdict("agrees"))
    found += [
        f"{count} of the agreeing calls of {name}: {detail}"
        for (name, detail), count in agreeing.items()
        if detail
    ]
    return found


def table(calls: list[Call]) -> list[str]:
    """A row for each compiled callable: verdicts on its calls, largest difference, weakest rule."""
    groups: dict[tuple[int, int], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.process, call.callable_index), []).append(call)
    several = any(call.process for call in calls)
    rows = [("callable", "verdict on its calls", "largest difference", "rule")]
    for (number, _), group in groups.items():
        compared = [call for call in group if call.verdict in ("agrees", "diverges")]
        seen = Counter(call.verdict for call in group)
        rows.append(
            (
                group[0].callable + (f" (process {number + 1})" if several else ""),
                ", ".join(f"{count} {verdict}" for verdict, count in seen.items()),
                f"{max(call.max_ulp for call in compared):.3g} ULP" if compared else "",
                max((call.rule for call in compared), key=RULES.index) if compared else "",
            )
        )
    if len(rows) == 1:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def text(outcome: Outcome) -> str:
    """What a person reads below the script's own output."""
    run, verdict = outcome.run, outcome.verdict
    lines = [
        f"audit of {outcome.script} with torch {machine.torch_version()}: "
        f"{len(run.checked)} of {run.calls_total} compiled calls checked",
        *(f"  {row}" for row in table(run.calls)),
    ]
    for headline, details in report.divergences(run.calls):
        lines += [f"- {headline}", *(f"    {detail}" for detail in details)]
    lines += [f"- {note}" for note in notes(outcome)]
    lines.append(f"{verdict.name} (exit code {verdict.exit_code}): {verdict.reason}")
    return "\n".join(lines)


def as_json(outcome: Outcome) -> str:
    """The same for machines. Numbers that are infinite or NaN become null."""
    run, verdict = outcome.run, outcome.verdict
    document = {
        "schema": 1,
        "script": outcome.script,
        "arguments": outcome.arguments,
        "torch": machine.torch_version(),
        "python": platform.python_version(),
        "verdict": verdict.name,
        "exit_code": verdict.exit_code,
        "reason": verdict.reason,
        "script_status": run.status,
        "runs": outcome.runs,
        "random_operations": run.drew or outcome.runs == 2,
        "fallback_random": run.fallback_random,
        "calls_total": run.calls_total,
        "calls_checked": len(run.checked),
        "max_ulp": max((call.max_ulp for call in run.checked), default=None),
        "divergences": [
            {"headline": headline, "details": details}
            for headline, details in report.divergences(run.calls)
        ],
        "notes": notes(outcome),
        "calls": run.calls,
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode()


def heard(log: list[events.Event]) -> tuple[list[Call], int]:
    """The audited calls of all processes, numbered by process, and how many calls there were."""
    pids = list(dict.fromkeys(event.pid for event in log if isinstance(event, events.Called)))
    calls = calls_of(log)
    # A process that dies does not tell its last count: no call has a higher number than it knew.
    totals = {event.pid: event.calls for event in log if isinstance(event, events.Counted)}
    audited = Counter(pids[call.process] for call in calls)
    return calls, sum(max(totals.get(pid, 0), audited[pid]) for pid in totals | audited)


def environment(job: Path, mark: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The user's own environment, and what attaches the audit to every Python that starts in it."""
    boot = str(Path(__file__).parent / "boot")
    theirs = [p for p in inherited.get("PYTHONPATH", "").split(os.pathsep) if p and p != boot]
    return {
        **inherited,
        "MEASURED_JOB": str(job),
        process.RUN_VARIABLE: mark,
        "PYTHONPATH": os.pathsep.join([boot, *theirs]),
    }


def audit(
    script: str,
    arguments: list[str],
    *,
    timeout: float | None = None,
    once: bool = False,
    fallback_random: bool = False,
    explained: bool = False,
    reproducer_path: str | None = None,
    output: int | None = None,
    tell: Callable[[str], Any] = lambda line: None,
) -> Outcome:
    """Run the script under the audit, a second time where random operations leave it undecided.

    With `explained`, and again and again where it diverges, to tell where in the compiler that
    arises; the first difference gets a reproducer at `reproducer_path`, if there is one.

    Its standard output goes to the descriptor `output`, or where ours goes. That of a second run
    goes to standard error: standard output holds what the script printed once.
    """
    command = [sys.executable, script, *arguments]
    start = _position_of_input()
    first = run(command, timeout=timeout, fallback_random=fallback_random, output=output)
    outcome = Outcome(script, arguments, first, 1)
    if not once and is_undecided(first):
        tell("a random operation was compiled; the script runs again, with eager's random streams")
        _rewind_input(start)
        second = run(command, timeout=timeout, fallback_random=True, output=2)
        outcome = Outcome(script, arguments, second if replaces(second, first) else first, 2)
    if outcome.run.stopped != "interrupted" and (found := _found(outcome)):
        with contextlib.suppress(KeyboardInterrupt):  # The verdict stands without it.
            if explained:
                tell("the script diverges; it runs again to find where in the compiler that arises")
                outcome = _explain(outcome, found, timeout=timeout, start=start)
            if reproducer_path is not None:
                outcome = _reproduce(outcome, Path(reproducer_path))
    return outcome


def _found(outcome: Outcome) -> list[locate.Found]:
    return [(one.call, one.difference) for one in report.differences(outcome.run.calls)]


def _explain(
    outcome: Outcome, found: list[locate.Found], *, timeout: float | None, start: int | None
) -> Outcome:
    """The outcome, with where in the compiler its differences arise."""
    script, arguments = outcome.script, outcome.arguments
    fallback_random = outcome.run.fallback_random

    def again(stage: str, seconds: float) -> list[Call] | None:
        _rewind_input(start)
        once_more = run(
            [sys.executable, script, *arguments],
            timeout=min(timeout or seconds, seconds),
            fallback_random=fallback_random,
            output=subprocess.DEVNULL,
            stage=stage,
            inputs=None if start is not None else subprocess.DEVNULL,
        )
        if once_more.stopped == "interrupted":
            raise KeyboardInterrupt
        return None if once_more.stopped else once_more.calls

    def bisect(target: Target, stage: str, seconds: float) -> events.Bisected | None:
        job = Job(
            "bisect",
            events="",
            script=os.path.abspath(script),
            arguments=arguments,
            fallback_random=fallback_random,
            lower_anew=True,
            stage=stage,
            target=target,
        )
        status, stopped, told = _attached(
            [sys.executable, "-m", "measured.bisection"],
            job,
            timeout=seconds,
            output=subprocess.DEVNULL,
            inputs=subprocess.DEVNULL,
            more=FORKING,
        )
        if stopped == "interrupted":
            raise KeyboardInterrupt
        if stopped:
            return None
        found = [event for event in told if isinstance(event, events.Bisected)]
        return found[-1] if found else events.Bisected("", f"the bisection {_ending(status or 0)}")

    return _with(outcome, locate.locate(found, again, bisect))


def _with(outcome: Outcome, origins: dict[Target, Origin]) -> Outcome:
    calls = locate.put(outcome.run.calls, origins)
    return msgspec.structs.replace(outcome, run=msgspec.structs.replace(outcome.run, calls=calls))


def _reproduce(outcome: Outcome, path: Path) -> Outcome:
    """Write a reproducer of the first difference, and try it."""
    call, difference = _found(outcome)[0]
    origin = difference.origin or Origin("", detail="nobody looked")
    text = reproducer.write(
        Path(outcome.script).read_text(encoding="utf-8"),
        os.path.basename(outcome.script),
        call,
        difference,
        origin=origin,
        arguments=outcome.arguments,
        fallback_random=outcome.run.fallback_random,
    )
    tried = written(path, text, origin, Path.cwd(), dict(os.environ))
    return _with(outcome, {locate.target(call, difference): tried})


def _rewind_input(start: int | None) -> None:
    if start is not None:
        os.lseek(0, start, os.SEEK_SET)


def _position_of_input() -> int | None:
    """Where standard input stands, if it is a file, which a second run can read again."""
    try:
        return os.lseek(0, 0, os.SEEK_CUR)
    except OSError:
        return None


def run(
    command: list[str],
    *,
    timeout: float | None,
    fallback_random: bool,
    output: int | None,
    stage: str = "",
    inputs: int | None = None,
) -> Run:
    """Run `command` with the audit attached, and leave nothing of it behind.

    With a `stage`, the compiler stops after it, and nothing is printed.
    """
    job = Job("audit", "", fallback_random=fallback_random, lower_anew=True, stage=stage)
    status, stopped, told = _attached(command, job, timeout=timeout, output=output, inputs=inputs)
    calls, total = heard(told)
    return Run(
        status=None if stopped == "timeout" else status,
        # A script that ends well after Ctrl-C has ended.
        stopped="" if stopped == "interrupted" and status == 0 else stopped,
        calls=calls,
        calls_total=total,
        drew=any(isinstance(event, events.Drew) for event in told),
        fallback_random=fallback_random,
        died_of_refusal=any(isinstance(event, events.DiedOfRefusal) for event in told),
    )


def _attached(
    command: list[str],
    job: Job,
    *,
    timeout: float | None,
    output: int | None,
    inputs: int | None,
    more: Mapping[str, str] | None = None,
) -> tuple[int | None, str, list[events.Event]]:
    """Run `command` with a job attached: its status, what cut it short, and what was heard."""
    with tempfile.TemporaryDirectory(prefix="measured-", ignore_cleanup_errors=True) as folder:
        log, path, mark = Path(folder, "events"), Path(folder, "job"), uuid.uuid4().hex
        path.write_bytes(msgspec.json.encode(msgspec.structs.replace(job, events=str(log))))
        # In our own process group: Ctrl-C in a terminal reaches the script as it always does.
        child = subprocess.Popen(
            command,
            env={**environment(path, mark, os.environ), **(more or {})},
            stdin=inputs,
            stdout=output,
            stderr=output if output == subprocess.DEVNULL else None,
        )
        try:
            with _passing_on_termination(child):
                stopped = _wait(child, timeout)
        finally:
            # What the script left running would go on writing to a log that is gone.
            if child.poll() is None:
                child.kill()
            process.kill_marked(mark)
            status = child.wait()
        return status, stopped, events.read(log)


def _wait(child: subprocess.Popen[bytes], timeout: float | None) -> str:
    """Wait for the end of the script; returns what cut it short, or an empty text."""
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        return "timeout"
    except KeyboardInterrupt:
        # The script has got the signal, too, and may have something to save. A second one ends it.
        with contextlib.suppress(KeyboardInterrupt):
            child.wait()
        return "interrupted"
    return ""


@contextlib.contextmanager
def _passing_on_termination(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGTERM, unlike Ctrl-C, reaches only the command: the script gets it from here."""

    def pass_on(*_: object) -> None:
        child.terminate()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
