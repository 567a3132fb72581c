"""A process that runs snippets for `mkdocs serve`, one at a time, as `serving` asks.

A process and not a thread: it can be interrupted as a build is by Ctrl-C, and then ends the
children of a snippet as a build does.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from measured import durations, interrupts, program
from measured.progress import Step, Tell
from measured.record import RunRecord
from measured.results import Job, Results

_END_SECONDS = 15.0
"""For the ending of the children of a snippet."""


class Told(msgspec.Struct, frozen=True, tag=True):
    """Sent when something begins."""

    step: Step


class Made(msgspec.Struct, frozen=True, tag=True):
    """Sent at the end of a job."""

    record: RunRecord


class Gone(Exception):
    """The process has ended before it had made the record."""


class Worker:
    """The process, as seen by the one that asks it. It is started when it is first needed."""

    def __init__(self, cache: Path, *, fresh: bool) -> None:
        self._arguments = [str(cache), *(["fresh"] if fresh else [])]
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def run(self, job: Job, tell: Tell) -> RunRecord:
        """The record of a snippet. Raises `Gone` if `end` is called meanwhile, or the process dies
        by itself."""
        if self._is_closed:
            raise Gone
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "measured.worker", *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # A Ctrl-C in the terminal is for the server, which then ends this process.
                start_new_session=True,
            )
        process = self._process
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            process.stdin.flush()
        except OSError:
            raise Gone from None
        for line in process.stdout:
            answer = msgspec.json.decode(line, type=Told | Made)
            if isinstance(answer, Made):
                return answer.record
            tell(answer.step)
        raise Gone

    def end(self) -> None:
        """Interrupt what runs, and end the process. The next job starts another."""
        if (process := self._process) and process.poll() is None:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()

    def close(self) -> None:
        """End the process, and start none again."""
        self._is_closed = True
        self.end()


def _serve(cache: Path, fresh: bool, jobs: BinaryIO, answers: BinaryIO) -> None:
    results = Results(cache, fresh=fresh)

    def answer(what: Told | Made) -> None:
        answers.write(msgspec.json.encode(what) + b"\n")
        answers.flush()

    for line in jobs:
        snippet, key = msgspec.json.decode(line, type=Job)
        began = time.monotonic()
        results.make([(snippet, key)], lambda step: answer(Told(step)))
        durations.note(cache, snippet.name, time.monotonic() - began)
        made = results.find(key)
        assert made
        answer(Made(made))


if __name__ == "__main__":
    program.die_with(os.getppid())
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError), interrupts.raised():
        _serve(Path(sys.argv[1]), "fresh" in sys.argv[2:], sys.stdin.buffer, sys.stdout.buffer)
