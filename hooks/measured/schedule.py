"""Runs what is missing: one measurement at a time, then audits beside each other.

Measurements come first and in batches, so that a batch's audits can share the processors while
nothing is timed.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from measured import children, machine, process, run, warm
from measured.progress import FINISHED, Step, Tell
from measured.record import RunRecord
from measured.run import Begun
from measured.snippets import Snippet

Job = tuple[Snippet, str]
"""A snippet and its content key."""

_MOST_AUDITS = 4
"""Audits beside each other: each needs the memory of a process that has imported torch."""

_BATCH = 2
"""Snippets per audit beside each other that are measured before their audits start."""


def execute(
    jobs: Sequence[Job],
    *,
    cache: Path,
    load: Callable[[str], RunRecord | None],
    keep: Callable[[Snippet, RunRecord], object],
    tell: Tell,
) -> None:
    """Run each job once, in this order, and `keep` its record as soon as there is one.

    `load` looks a key up under the lock: what another build has run meanwhile is left out. `keep`
    and `tell` are called in this thread. When an exception ends this, such as an interrupt, so
    does every child.
    """
    beside = max(1, min(_MOST_AUDITS, _cores(), len(jobs)))
    numbered, size = list(enumerate(jobs, 1)), _BATCH * beside
    with contextlib.ExitStack() as stack:
        parents = _parents(stack, beside if len(jobs) > 1 else 0)
        for start in range(0, len(jobs), size):
            with run.measurement_lock():
                batch = numbered[start : start + size]
                _run(batch, len(jobs), beside, parents, cache, load, keep, tell)


def _cores() -> int:
    return machine.describe().cores


def _run(
    batch: Sequence[tuple[int, Job]],
    of: int,
    beside: int,
    parents: queue.SimpleQueue[warm.Parent | None],
    cache: Path,
    load: Callable[[str], RunRecord | None],
    keep: Callable[[Snippet, RunRecord], object],
    tell: Tell,
) -> None:
    with contextlib.ExitStack() as folders:
        begun: list[tuple[int, Begun]] = []
        for number, (snippet, key) in batch:
            if load(key) is None:
                tell(Step(snippet.name, "observing", number, of))
                begun.append((number, folders.enter_context(run.begin(snippet, key, cache))))
        pool = folders.enter_context(ThreadPoolExecutor(beside))
        folders.enter_context(_ending_children())
        futures: dict[Future[RunRecord], tuple[int, Snippet]] = {}
        for number, one in begun:
            futures[pool.submit(_audit, one, parents)] = number, one.snippet
            tell(Step(one.snippet.name, "auditing", number, of))
        for future in as_completed(futures):
            number, snippet = futures[future]
            keep(snippet, future.result())
            tell(Step(snippet.name, FINISHED, number, of))


@contextlib.contextmanager
def _ending_children() -> Iterator[None]:
    """End all children when an exception leaves: nobody waits for their results any more."""
    try:
        yield
    except BaseException:
        process.stopping.set()
        raise


def _parents(stack: contextlib.ExitStack, number: int) -> queue.SimpleQueue[warm.Parent | None]:
    """What forks the audited children, for as many audits as there are beside each other."""
    parents: queue.SimpleQueue[warm.Parent | None] = queue.SimpleQueue()
    for _ in range(number if warm.is_possible() else 0):
        parents.put(stack.enter_context(warm.Parent(children.seed_of_build())))
    return parents


def _audit(begun: Begun, parents: queue.SimpleQueue[warm.Parent | None]) -> RunRecord:
    try:
        parent = parents.get_nowait()
    except queue.Empty:
        return begun.finish()
    try:
        return begun.finish(parent)
    finally:
        parents.put(parent)
