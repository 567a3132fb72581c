"""Whether a measurement was disturbed: decided from what it measured. Pure."""

from __future__ import annotations

import statistics

from measured.constants import DRIFT_LIMIT, FEW_SAMPLES, SPREAD_LIMIT
from measured.record import RunRecord, Timing


def spread(timing: Timing) -> float:
    """Inter-quartile range over median."""
    return timing.iqr / timing.median if timing.median else 0.0


def drift(timing: Timing) -> float:
    """How far apart the medians of the first and the second half are, over the median."""
    in_order = [
        sample for _, sample in sorted(zip(timing.turns, timing.samples_seconds, strict=True))
    ]
    half = timing.n // 2
    if not half or not timing.median:
        return 0.0
    first, second = in_order[:half], in_order[-half:]
    return abs(statistics.median(first) - statistics.median(second)) / timing.median


def excess(timing: Timing) -> float:
    """How many times its limit the worse of spread and drift is; more than 1 means disturbed."""
    if timing.n < FEW_SAMPLES:
        return 0.0
    return max(spread(timing) / SPREAD_LIMIT, drift(timing) / DRIFT_LIMIT)


def noisy(record: RunRecord) -> list[Timing]:
    """The series of a run that were disturbed."""
    return [timing for timing in record.timings if excess(timing) > 1]


def reasons(record: RunRecord) -> list[str]:
    """Why the times of a run decide nothing, for a reader; empty if they do."""
    names = ", ".join(timing.name for timing in noisy(record))
    return [f"noisy: {names}"] if names else []
