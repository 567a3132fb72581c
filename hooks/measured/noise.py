"""Whether a measurement was disturbed: decided from what it measured. Pure."""

from __future__ import annotations

import statistics

from measured.comparisons import comparisons
from measured.constants import BUSY_SHARE, DRIFT_LIMIT, FEW_SAMPLES, SPREAD_LIMIT
from measured.record import Conditions, RunRecord, Timing


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
    """Why the times of a run are not to be trusted, a line each; none if they are.

    A time that was taken once has no spread to judge it by. There, the machine's counters are all
    there is: a run that had not the machine to itself is told, whatever its series look like.
    """
    return [
        *(_disturbed(timing) for timing in noisy(record)),
        *(
            f"{comparison.name} was not timed in turns"
            for comparison in comparisons(record.timings)
            if not comparison.in_turns
        ),
        *_busy(record.conditions),
    ]


def _disturbed(timing: Timing) -> str:
    if spread(timing) / SPREAD_LIMIT >= drift(timing) / DRIFT_LIMIT:
        return f"{timing.name}: IQR is {spread(timing):.0%} of the median"
    return f"{timing.name}: the medians of its two halves are {drift(timing):.0%} apart"


def _busy(conditions: Conditions) -> list[str]:
    shares = {
        "other processes": conditions.others_share,
        "the hypervisor": conditions.stolen_share,
    }
    return [
        f"{taker} took {share:.0%} of the processors' time"
        for taker, share in shares.items()
        if share > BUSY_SHARE
    ]
