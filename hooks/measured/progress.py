"""Says how far a build is: a live line in a terminal, a plain line per step elsewhere."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from measured import durations

FINISHED = "finished"


class Step(msgspec.Struct, frozen=True):
    """What a build has begun to do with a snippet."""

    name: str
    doing: str
    """observing, observing again, auditing, finished."""
    number: int
    """Which of the snippets that run, from 1."""
    of: int


Tell = Callable[[Step], None]


def remaining_seconds(
    known: Mapping[str, float],
    took: Mapping[str, float],
    running: Mapping[str, float],
    waiting: Sequence[str],
    elapsed: float,
) -> float | None:
    """How long the rest of a build will take; None while nothing is known to tell from.

    `known`: seconds that snippets took in earlier builds; `took`: in this one; `running`: for how
    long those have run that have not finished. A snippet that never ran will take what those of
    this build took on average. Where snippets overlap, a build is faster than their sum.

    >>> remaining_seconds({"a": 4.0, "b": 10.0}, {}, {"a": 1.0}, ["b"], 1.0)
    13.0
    >>> remaining_seconds({}, {"a": 4.0, "b": 6.0}, {}, ["c"], 10.0)
    5.0
    >>> remaining_seconds({}, {"a": 4.0, "b": 6.0}, {}, ["c"], 5.0)
    2.5
    """
    mean = statistics.fmean(took.values()) if took else None

    def guess(name: str) -> float | None:
        return known.get(name, mean)

    left = [guess(name) for name in waiting]
    left += [
        None if (whole := guess(name)) is None else max(whole - age, 0.0)
        for name, age in running.items()
    ]
    if None in left:
        return None
    sequential = sum(took.values())
    pace = min(1.0, elapsed / sequential) if sequential else 1.0
    return pace * sum(seconds for seconds in left if seconds is not None)


def clock(seconds: float) -> str:
    """A duration as people say it.

    >>> clock(7.4), clock(100), clock(4000)
    ('7 s', '1 min 40 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Tracker:
    """What has begun and what has finished, and when. All times in seconds."""

    def __init__(
        self,
        names: Sequence[str],
        known: Mapping[str, float],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names, self._known, self._now = list(names), known, now
        self._began = now()
        self._started: dict[str, float] = {}
        self.took: dict[str, float] = {}

    def note(self, step: Step) -> None:
        started = self._started.setdefault(step.name, self._now())
        if step.doing == FINISHED:
            self.took[step.name] = self._now() - started

    @property
    def elapsed(self) -> float:
        return self._now() - self._began

    @property
    def remaining(self) -> float | None:
        running = {
            name: self._now() - started
            for name, started in self._started.items()
            if name not in self.took
        }
        waiting = [name for name in self._names if name not in self._started]
        return remaining_seconds(self._known, self.took, running, waiting, self.elapsed)

    @property
    def left(self) -> str:
        """The remaining time in words; empty while nothing is known."""
        return "" if (seconds := self.remaining) is None else f"about {clock(seconds)} left"


@contextlib.contextmanager
def shown(
    names: Sequence[str], cache: Path, *, write: Callable[[str], None], live: bool
) -> Iterator[Tell]:
    """Shows the steps of a build that runs the snippets `names`, and remembers how long each took.

    `live`: in a bar on standard error; else `write` gets a line per step.
    """
    tracker = Tracker(names, durations.read(cache))
    lock = threading.Lock()
    with _bar(tracker, len(names)) if live else _lines(tracker, write) as show:

        def tell(step: Step) -> None:
            with lock:
                tracker.note(step)
                show(step)
                if step.doing == FINISHED:
                    durations.note(cache, step.name, tracker.took[step.name])

        yield tell


@contextlib.contextmanager
def _lines(tracker: Tracker, write: Callable[[str], None]) -> Iterator[Tell]:
    def show(step: Step) -> None:
        told = f"{step.doing} {step.number}/{step.of}: {step.name}"
        write(", ".join(filter(None, (told, f"{clock(tracker.elapsed)} elapsed", tracker.left))))

    yield show


@contextlib.contextmanager
def _bar(tracker: Tracker, total: int) -> Iterator[Tell]:
    # Only a build that runs something, in a terminal, need wait for this import.
    from rich import progress as bars
    from rich.console import Console

    class Left(bars.ProgressColumn):
        """Counted anew whenever the line is drawn."""

        def render(self, task: bars.Task) -> str:
            return tracker.left

    bar = bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        Left(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total)

        def show(step: Step) -> None:
            bar.update(task, completed=len(tracker.took), description=f"{step.doing} {step.name}")

        yield show
