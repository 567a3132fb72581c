"""Two ways to do the same thing, timed in turns: the ratio of their times, and its spread. Pure."""

from __future__ import annotations

import msgspec

from measured.record import Timing, quantile

BASE = "eager"
"""The side that others are compared with, where there is one of this name."""


class Comparison(msgspec.Struct, frozen=True):
    """How many times as long one side took as the other."""

    label: str
    case: str
    base: str
    """The side whose time is the numerator."""
    other: str
    ratios: list[float]
    """One for each round; for sides that were not timed in turns, one of their medians."""
    in_turns: bool
    """Whether each sample of one side was taken next to one of the other, so that a busy moment hit
    both."""

    @property
    def name(self) -> str:
        what = " ".join(filter(None, (self.label, self.case)))
        return f"{what}: {self.base} / {self.other}"

    @property
    def median(self) -> float:
        return quantile(self.ratios, 0.5)

    @property
    def quartiles(self) -> tuple[float, float]:
        """What half of the rounds lie between."""
        return quantile(self.ratios, 0.25), quantile(self.ratios, 0.75)


def comparisons(timings: list[Timing]) -> list[Comparison]:
    """Every pair of sides of the same thing: the base, or the first side, over each other."""
    groups: dict[tuple[str, str], list[Timing]] = {}
    for timing in timings:
        if timing.side:
            groups.setdefault((timing.label, timing.case), []).append(timing)
    return [
        _comparison(base, other, len(sides))
        for sides in groups.values()
        for base in [next((t for t in sides if t.side == BASE), sides[0])]
        for other in sides
        if other is not base
    ]


def _comparison(base: Timing, other: Timing, sides: int) -> Comparison:
    in_turns = base.n == other.n and all(
        abs(left - right) < sides for left, right in zip(base.turns, other.turns, strict=True)
    )
    ratios = (
        [a / b for a, b in zip(base.samples_seconds, other.samples_seconds, strict=True)]
        if in_turns
        else [base.median / other.median]
    )
    return Comparison(base.label, base.case, base.side, other.side, ratios, in_turns)
