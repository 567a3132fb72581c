"""When a time counts as disturbed, and what is said of it: pure parts, and a busy machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from measured import books, events, measure, noise, process, run
from measured.comparisons import comparisons
from measured.constants import ATTEMPTS
from measured.record import Conditions, RunRecord, Timing
from measured.snippets import Expectations, Place, Snippet

QUIET = Conditions(0.0, 0.0, 0.0, 0, None)


def timing(samples: list[float], turns: list[int] | None = None, side: str = "") -> Timing:
    return Timing("f", "", side, 1, 10, samples, turns or list(range(len(samples))))


@pytest.mark.parametrize(
    ("samples", "disturbed"),
    [
        ([1.0] * 20, False),
        ([1.0, 1.02] * 10, False),
        ([1.0, 1.2] * 10, True),  # Wide.
        ([1.0] * 10 + [1.07] * 10, True),  # Narrow in each half, and apart.
        ([1.0] * 19 + [9.0], False),  # One hiccup moves neither the quartiles nor the medians.
        ([1.0, 2.0, 3.0], False),  # Too few to say.
    ],
)
def test_a_time_is_disturbed_if_it_is_wide_or_drifts(samples, disturbed):
    assert (noise.excess(timing(samples)) > 1) is disturbed


def test_the_halves_are_those_of_the_order_in_which_samples_were_taken():
    samples = [1.0, 1.07] * 10
    first_the_fast_ones = [i // 2 + 10 * (i % 2) for i in range(20)]
    assert noise.drift(timing(samples)) == 0
    assert noise.drift(timing(samples, first_the_fast_ones)) == pytest.approx(0.07 / 1.035)


def timed(side: str, samples: list[float]) -> events.Timed:
    return events.Timed(1, "gelu", "8 floats", side, 1, 10, samples)


def test_measurements_of_one_name_are_one_series_and_keep_their_turns():
    log = [timed("eager", [3.0]), timed("compiled", [1.0]), timed("eager", [4.0]), timed("compiled", [2.0])]  # fmt: skip
    eager, compiled = books.timings(log)
    assert (eager.name, eager.samples_seconds, eager.turns) == (
        "gelu 8 floats eager",
        [3, 4],
        [0, 2],
    )
    assert (compiled.samples_seconds, compiled.turns) == ([1, 2], [1, 3])


def test_a_ratio_is_that_of_each_round():
    log = [event for a, b in ((3.0, 1.0), (6.0, 2.0), (8.0, 2.0)) for event in (timed("compiled", [b]), timed("eager", [a]))]  # fmt: skip
    (found,) = comparisons(books.timings(log))
    assert (found.name, found.ratios, found.in_turns) == (
        "gelu 8 floats: eager / compiled",
        [3, 3, 4],
        True,
    )


def test_sides_that_did_not_take_turns_have_one_ratio_and_are_told():
    log = [timed("eager", [3.0] * 9), timed("compiled", [1.0] * 9)]
    (found,) = comparisons(books.timings(log))
    assert (found.ratios, found.in_turns) == ([3.0], False)
    assert "was not timed in turns" in " ".join(noise.reasons(a_record(log)))


def a_record(log: list[events.Event], conditions: Conditions = QUIET) -> RunRecord:
    """Only what `noise` asks for."""
    return msgspec.convert(
        {
            "schema": 0, "key": "", "snippet": "", "source": "", "options": {}, "date": "",
            "machine": dict.fromkeys(("system", "cpu", "isa", "python", "torch", "compiler"), "")
            | {"cores": 2, "memory_bytes": 1, "gpu": None},
            "observed": {"ending": "finished", "detail": "", "wall_seconds": 1.0, "cpu_seconds": 1.0,
                         "peak_memory_bytes": 1, "output": ""},
            "attempts": 1, "conditions": msgspec.to_builtins(conditions),
            "books": {"compiles": [], "breaks": []}, "warm": None, "values": {},
            "timings": msgspec.to_builtins(books.timings(log)), "figures": [], "audit": None,
        },
        RunRecord,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (Conditions(9.0, 0.01, 0.01, 10_000, 2600.0), []),  # Load and switches explain only.
        (Conditions(0.0, 0.4, 0.0, 0, None), ["other processes took 40% of the processors' time"]),
        (Conditions(0.0, 0.0, 0.2, 0, None), ["the hypervisor took 20% of the processors' time"]),
    ],
)
def test_a_run_that_had_not_the_machine_to_itself_is_told(conditions, told):
    assert noise.reasons(a_record([], conditions)) == told


class _Child:
    """Stands in for the children of a snippet: each run has these samples."""

    def __init__(self, *runs: list[float]) -> None:
        self.runs, self.calls = iter(runs), 0

    def __call__(self, *_) -> tuple[measure.Process, list[events.Event], process.Usage]:
        self.calls += 1
        ended = measure.Process("finished", "", 1.0, 1.0, 1, "")
        return ended, [timed("eager", next(self.runs))], process.Usage()


STEADY, WIDE, WIDER = [1.0] * 20, [1.0, 1.2] * 10, [1.0, 2.0] * 10


@pytest.mark.parametrize(
    ("runs", "attempts", "shown"),
    [
        ([STEADY], 1, STEADY),
        ([WIDE, STEADY], 2, STEADY),
        ([WIDER, WIDE, STEADY], ATTEMPTS, WIDE),
        ([WIDE, WIDER, STEADY], ATTEMPTS, WIDE),  # The least disturbed one, not the last.
    ],
)
def test_a_disturbed_measurement_is_taken_again_up_to_a_limit(
    monkeypatch, tmp_path, runs, attempts, shown
):
    child = _Child(*runs)
    monkeypatch.setattr(measure.children, "run", child)
    snippet = Snippet("a/b", "", Place("p.md", 1), Expectations(), {})
    observed = measure.observe(snippet, tmp_path, 10.0, None)
    assert (observed.attempts, child.calls) == (attempts, attempts)
    assert observed.timings[0].samples_seconds == shown


# The long side does three times the work of the short one.
THREE = """
from torch.utils.benchmark import Timer

work = "sum(range({}))"
sides = {"long": work.format(60_000), "short": work.format(20_000)}
timers = [Timer(stmt, label="sum", description=side) for side, stmt in sides.items()]
rounds = [[timer.timeit(2).mean for timer in timers] for _ in range(40)]
ratio = sum(long for long, _ in rounds) / sum(short for _, short in rounds)
"""


@pytest.fixture
def competing() -> Iterator[None]:
    """Two busy processes per processor."""
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(2 * (psutil.cpu_count() or 1))]
    yield
    for each in busy:
        each.kill()
        each.wait()


def test_next_to_a_busy_process_a_ratio_is_right_or_marked(competing, tmp_path: Path):
    snippet = Snippet("a/b", THREE, Place("p.md", 1), Expectations(fresh=True, graphs=0), {})
    with run.measurement_lock():
        made = run.run(snippet, "key", tmp_path / "cache")
    assert made.observed.ending == "finished", made.observed.output
    assert made.timings[0].n == 40
    assert noise.reasons(made) or made.values["ratio"] == pytest.approx(3, rel=0.25)
    # What it was up against is in the record.
    assert made.conditions.others_share > 0.3
    assert noise.reasons(made)
