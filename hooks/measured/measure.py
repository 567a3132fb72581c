"""Observes one snippet until its times are quiet, and says what the machine did meanwhile."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import msgspec
import psutil

from measured import books, children, events, noise, toolchain
from measured.constants import ATTEMPTS
from measured.process import Usage
from measured.record import Books, Conditions, Process, Timing
from measured.snippets import Snippet


class Observed(msgspec.Struct, frozen=True):
    """The least disturbed of all runs."""

    date: str
    """When it started, ISO 8601, UTC."""
    process: Process
    events: list[events.Event]
    timings: list[Timing]
    conditions: Conditions
    attempts: int
    """How many runs there were."""


def observe(snippet: Snippet, folder: Path, timeout: float, warmed: Path | None) -> Observed:
    """Run the observed child in `folder`; again, up to a limit, while its times are disturbed.

    Afterwards the Inductor cache in `folder` is that of the last run.
    """
    runs: list[Observed] = []
    while len(runs) < ATTEMPTS:
        toolchain.prepare(folder, warmed)
        runs.append(_once(snippet, folder, timeout))
        if _excess(runs[-1]) <= 1 or runs[-1].process.ending not in ("finished", "raised"):
            break
    return msgspec.structs.replace(min(runs, key=_excess), attempts=len(runs))


def observe_warm(snippet: Snippet, folder: Path, timeout: float) -> Books:
    """The books of a run in a new process, with the caches that the last one left."""
    toolchain.clear(folder)
    _, heard, _ = children.run(snippet, "observe", folder, timeout)
    return books.books(heard, str(folder / "run"))


def _once(snippet: Snippet, folder: Path, timeout: float) -> Observed:
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    watch = Watch()
    process, heard, usage = children.run(snippet, "observe", folder, timeout)
    return Observed(date, process, heard, books.timings(heard), watch.conditions(usage), 1)


def _excess(observed: Observed) -> float:
    return max(map(noise.excess, observed.timings), default=0.0)


class Watch:
    """Looks at the machine's counters now, and again when a child has ended."""

    def __init__(self) -> None:
        self._load = psutil.getloadavg()[0]
        self._before = psutil.cpu_times()
        self._start = time.perf_counter()

    def conditions(self, usage: Usage) -> Conditions:
        """What the machine did since; `usage` is the child's."""
        after = psutil.cpu_times()
        spent = {name: getattr(after, name) - getattr(self._before, name) for name in after._fields}
        # On Linux, guest time is part of user time.
        whole = sum(spent.values()) - spent.get("guest", 0.0) - spent.get("guest_nice", 0.0)
        busy = sum(spent.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
        return Conditions(
            load=self._load,
            others_share=max(busy - usage.cpu_seconds, 0.0) / whole if whole else 0.0,
            stolen_share=spent.get("steal", 0.0) / whole if whole else 0.0,
            involuntary_switches=usage.involuntary_switches,
            clock_mhz=frequency.current if frequency else None,
        )
