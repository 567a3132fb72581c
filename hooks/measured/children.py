"""One child of a snippet: its folder and its job, and how it went."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from measured import events, masking, process, toolchain, warm
from measured.child import Job, Target
from measured.constants import FILE_BYTES, MEMORY_BYTES, OUTPUT_BYTES, TIMEOUT_SECONDS
from measured.record import Process
from measured.snippets import SEED_VARIABLE, Snippet

FORKING = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Environment of a process that runs the program in forks of itself: no pool of workers each."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """What a snippet's children share: their caches, and below it a folder for each."""
    folder = Path(tempfile.mkdtemp(prefix="measured-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def import_all(program: str) -> bool:
    """Run a program that imports what every snippet imports, so that its bytecode is there."""
    with temporary_folder() as folder:
        return probe(program, folder)


def probe(program: str, folder: Path) -> bool:
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


def file_name(snippet: Snippet) -> str:
    """Name of the file that a child runs."""
    return f"{snippet.name.rsplit('/', 1)[-1].replace('#', '_')}.py"


def seed_of_build() -> int:
    """What is added to every seed of every snippet."""
    return int(os.environ.get(SEED_VARIABLE, "0"))


def run(
    snippet: Snippet,
    mode: str,
    folder: Path,
    timeout: float,
    fallback_random: bool = False,
    stage: str = "",
    target: Target | None = None,
    parent: warm.Parent | None = None,
) -> tuple[Process, list[events.Event], process.Usage]:
    """Run the snippet once in a folder of its own below `folder`: in a new interpreter, or in a
    child of `parent`."""
    # The same name in both runs: Dynamo's and Inductor's cache keys hold the script's path.
    home = folder / "run"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    script = home / file_name(snippet)
    script.write_text(snippet.source + "\n", encoding="utf-8")
    log_path = parent.events if parent else folder / f"{mode}.events"
    log_path.unlink(missing_ok=True)
    job = Job(
        mode=mode,
        script=str(script),
        events=str(log_path),
        starter=parent.pid if parent else os.getpid(),
        memory_bytes=MEMORY_BYTES,
        file_bytes=FILE_BYTES,
        fallback_random=fallback_random,
        seed=seed_of_build(),
        lower_anew=mode == "bisect",
        stage=stage,
        target=target,
    )
    job_path = folder / f"{mode}.job"
    job_path.write_bytes(msgspec.json.encode(job))
    more = {} if mode == "observe" else warm.PATIENT
    outcome = process.run(
        ["-m", "measured.bisection" if mode == "bisect" else "measured.program"],
        folder=home,
        env={
            **warm.environment(home, job_path, folder),
            **more,
            **(FORKING if mode == "bisect" else {}),
        },
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
            cpu_seconds=outcome.usage.cpu_seconds,
            peak_memory_bytes=outcome.usage.peak_memory_bytes,
            output=masking.clean(outcome.output, str(home)),
        ),
        log,
        outcome.usage,
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
    if raised := last(log, events.Raised):
        return "raised", raised.exception
    if last(log, events.Finished) and status == 0:
        return "finished", ""
    if exited := last(log, events.Exited):
        return "ended early", f"sys.exit({exited.status}) before its last line"
    return "ended early", f"left with status {status} before its last line"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last(log: Iterable[events.Event], kind: type) -> events.Event | None:
    """The last event of a kind."""
    return next((event for event in reversed(list(log)) if isinstance(event, kind)), None)
