"""Turns the observer's events into the compiler's books. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from measured import events
from measured.masking import lasting, paths
from measured.record import Books, Break, Compile, Timing

_RESUME = re.compile(r"torch_dynamo_resume_in_.*_at_(\d+)$")
_LIMIT = "Dynamo recompile limit exceeded"


def books(log: Iterable[events.Event], folder: str) -> Books:
    """Compiles in the order they ended, and the places where graphs broke.

    `folder` is the child's own, which is left out of all paths.
    """
    compiled = [event for event in log if isinstance(event, events.Compiled)]
    broke = [event for event in log if isinstance(event, events.Broke)]
    processes = list(dict.fromkeys(event.pid for event in compiled))
    return Books(
        compiles=[_compile(event, processes.index(event.pid), folder) for event in compiled],
        breaks=_breaks(compiled, broke, folder),
    )


def timings(log: Iterable[events.Event]) -> list[Timing]:
    """The benchmark measurements by what was measured, in the order they were begun.

    Measurements taken in turns (eager, compiled, eager, compiled) become one series for each.
    """
    series: dict[tuple[object, ...], tuple[list[float], list[int]]] = {}
    turn = itertools.count()
    for event in log:
        if isinstance(event, events.Timed):
            key = event.label, event.case, event.side, event.threads, event.calls_per_sample
            samples, turns = series.setdefault((event.pid, *key), ([], []))
            samples += event.samples_seconds
            turns += itertools.islice(turn, len(event.samples_seconds))
    return [Timing(*key[1:], samples, turns) for key, (samples, turns) in series.items()]


def _compile(event: events.Compiled, process: int, folder: str) -> Compile:
    # Dynamo's counters nest: each phase's own share is what the next one leaves of it.
    own_us = {
        "dynamo": event.entire_us - event.backend_us,
        "aot_autograd": event.backend_us - event.inductor_us,
        "inductor": event.inductor_us - event.cpp_us,
        "cpp": event.cpp_us,
    }
    # The toolchain is prepared where it is first needed: in code generation, or, for the key of a
    # cache entry, before it.
    left = event.toolchain_us
    for phase in ("inductor", "aot_autograd", "dynamo"):
        taken = min(left, max(own_us[phase], 0))
        own_us[phase] -= taken
        left -= taken
    own_us["toolchain"] = event.toolchain_us - left
    return Compile(
        process=process,
        compile_id=event.compile_id,
        function=event.function,
        file=paths(event.file, folder),
        line=event.line,
        graph_ops=event.graph_ops,
        backward=event.backward,
        recompile_reason=event.recompile_reason and lasting(event.recompile_reason, folder),
        failure=event.failure,
        total_seconds=event.entire_us / 1e6,
        cache_hits=event.cache_hits,
        cache_misses=event.cache_misses,
        **{f"{phase}_seconds": max(own, 0) / 1e6 for phase, own in own_us.items()},
    )


def _breaks(compiled: list[events.Compiled], broke: list[events.Broke], folder: str) -> list[Break]:
    """One entry per place: a break seen by two compiles, or by its reason and its resume
    function, is one break. A data-dependent `if` shows only as resume functions."""
    reasons: dict[tuple[str, int], str] = {}
    for event in broke:
        reasons.setdefault((event.file, event.line), event.reason)
    for event in compiled:
        if match := _RESUME.match(event.function):
            reasons.setdefault((event.file, int(match[1])), "")
        # A frame that cannot be split (a break inside a loop) is given up whole, or raises
        # under fullgraph: the reason stands only in the failure.
        if event.failure == "Unsupported" and not event.failure_reason.startswith(_LIMIT):
            reasons.setdefault((event.failure_file, event.failure_line), event.failure_reason)
    return sorted(
        Break(paths(file, folder), line, lasting(reason, folder))
        for (file, line), reason in reasons.items()
    )
