"""`python -m measured.calibrate`: what each constant of the parity rule would have had to be.

Innocent programs run compiled and in eager over many seeds, and every element is asked which
constants would have let it pass. Nothing is timed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch

from measured import battery, compare
from measured.battery import Mode, Program, Read, Tensors
from measured.constants import (
    MORE_NOISE_RUNS,
    NOISE_FACTOR,
    NOISE_RUNS,
    REFERENCE_FACTOR,
)
from measured.reference import Float64Shadow, Jitter

Run = Callable[[Mode, Read], Tensors]

ULP_LIMITS = {4: (4, 8, 16, 32), 8: (4, 8, 16, 32), 2: (1, 2, 4, 8), 1: (0, 1, 2)}
"""Limits of rule 1 that are tried, by size of the element in bytes."""
REFERENCE_FACTORS = (1, 2, 4)
NOISE_FACTORS = (3, 5, 10, 20, 30)
RULES = ("1", "1+2", "1+3", "1+2+3")
"""Which rules an element may pass by."""


class EagerAgain:
    """The reference of an audit, for a function of tensors: further eager runs when asked."""

    def __init__(self, run: Run, first_seed: int = 0) -> None:
        self._run = run
        self._first_seed = first_seed
        self._precise: Tensors | None = None
        self._base: Tensors = {}
        self._squares: Tensors = {}
        self._noise: dict[int, Tensors] = {}
        self._runs = 0

    def float64(self, path: str) -> torch.Tensor | None:
        if self._precise is None:
            shadow = Float64Shadow()
            self._precise = self._run(shadow, shadow.shadow)
        return self._precise.get(path)

    def noise(self, path: str, runs: int) -> torch.Tensor | None:
        if runs not in self._noise:
            if not self._base:
                self._base = self._run(contextlib.nullcontext(), widened)
            for seed in range(self._runs, runs):
                for key, value in self._run(Jitter(self._first_seed + seed), widened).items():
                    if value.is_floating_point():
                        square = value.sub_(self._base[key]).nan_to_num_(0.0, 0.0, 0.0).square_()
                        self._squares[key] = self._squares.get(key, 0) + square
            self._runs = runs
            self._noise[runs] = {k: (v / runs).sqrt() for k, v in self._squares.items()}
        return self._noise[runs].get(path)

    def moves(self, path: str, value: Any) -> bool:
        return False


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """As float64, complex numbers as their two parts."""
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


@dataclasses.dataclass(frozen=True)
class Needs:
    """What the elements of one tensor would need to pass: those beyond the least limit tried."""

    dtype: torch.dtype
    elements: int
    special: int
    """Elements where NaN or infinity stands on one side only: no constant lets them pass."""
    worst: float
    """Largest finite distance in ULP, of all elements."""
    ulp: torch.Tensor
    """Distance from eager in ULP."""
    factor: torch.Tensor
    """Smallest reference factor with which rule 2 would let the element pass."""
    few: torch.Tensor
    """Distance from eager, in times the noise of the first runs."""
    many: torch.Tensor
    """The same after the further runs; that of the first where they were not asked for."""

    def fails(
        self,
        rules: str = "1+2+3",
        limit: float | None = None,
        reference: float = REFERENCE_FACTOR,
        noise: float = NOISE_FACTOR,
    ) -> torch.Tensor:
        """Where an element passes by none of `rules`, with these constants."""
        bad = self.ulp > (compare.ulp_limit(self.dtype) if limit is None else limit)
        if "2" in rules:
            bad &= ~(self.factor <= reference)
        if "3" in rules:
            bad &= ~(torch.minimum(self.few, self.many) <= noise)
        return bad


def needs(
    eager: torch.Tensor, compiled: torch.Tensor, path: str, again: compare.Reference, least: float
) -> Needs:
    """Ask every element of a float tensor that is further than `least` ULP from eager."""
    dtype = eager.dtype
    left, right = widened(eager).reshape(-1), widened(compiled).reshape(-1)
    if dtype.is_complex:
        dtype = torch.view_as_real(eager.resolve_conj()).dtype
    in_ulp = (right - left).abs_().div_(compare.ulp(left, dtype))
    in_ulp.masked_fill_((left == right) | (left.isnan() & right.isnan()), 0.0)
    # The distance from a zero to a number may be more units than there are.
    in_ulp.clamp_max_(torch.finfo(torch.float64).max)
    finite = (left.isfinite() & right.isfinite()) | (in_ulp == 0)
    at = torch.nonzero(finite & (in_ulp > least)).flatten()
    empty = torch.full((at.numel(),), math.inf, dtype=torch.float64)
    factor, few, many = empty, empty, empty
    if at.numel():
        left, right = left[at], right[at]
        precise = again.float64(path)
        if precise is not None:
            factor = reference_factor(left, right, widened(precise).reshape(-1)[at], dtype)
        few = many = noise_factor(left, right, again.noise(path, NOISE_RUNS), at)
        open_ = (in_ulp[at] > compare.ulp_limit(dtype)) & ~(factor <= REFERENCE_FACTOR)
        if bool((open_ & ~(few <= NOISE_FACTORS[0])).any()):
            many = noise_factor(left, right, again.noise(path, NOISE_RUNS + MORE_NOISE_RUNS), at)
    return Needs(
        dtype=dtype,
        elements=in_ulp.numel(),
        special=int((~finite).sum()),
        worst=float(in_ulp[finite].max()) if bool(finite.any()) else 0.0,
        ulp=in_ulp[at],
        factor=factor,
        few=few,
        many=many,
    )


def reference_factor(
    eager: torch.Tensor, compiled: torch.Tensor, precise: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Smallest factor with which rule 2 lets each element pass; infinite where none does."""
    allowed = compare.reference_ulp(dtype) * compare.ulp(eager, dtype)
    beyond = ((compiled - precise).abs() - allowed).clamp_min(0.0)
    factor = beyond / (eager - precise).abs()
    return factor.masked_fill(beyond == 0, 0.0).masked_fill(~precise.isfinite(), math.inf)


def noise_factor(
    eager: torch.Tensor, compiled: torch.Tensor, noise: torch.Tensor | None, at: torch.Tensor
) -> torch.Tensor:
    """Distance in times the noise; infinite where eager does not move."""
    if noise is None:
        return torch.full_like(eager, math.inf)
    return (compiled - eager).abs() / noise.reshape(-1)[at].to(torch.float64)


@dataclasses.dataclass
class Tally:
    """What one program showed in one dtype, over all seeds."""

    dtype: torch.dtype
    tensors: int = 0
    elements: int = 0
    special: int = 0
    worst: float = 0.0
    beyond_one: int = 0
    beyond_two: int = 0
    factor: float = 0.0
    few: float = 0.0
    many: float = 0.0
    by_rule: Counter[str] = dataclasses.field(default_factory=Counter)
    flagged: Counter[str] = dataclasses.field(default_factory=Counter)
    """Path of a tensor -> its elements that no rule let pass."""
    paths: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Path of a tensor -> largest distance in ULP and in times the noise, of what asked rule 3."""
    limits: Counter[tuple[float, str]] = dataclasses.field(default_factory=Counter)
    references: Counter[float] = dataclasses.field(default_factory=Counter)
    noises: Counter[float] = dataclasses.field(default_factory=Counter)

    def add(self, path: str, need: Needs, report: compare.Report) -> None:
        self.tensors += 1
        self.elements += need.elements
        self.special += need.special
        self.worst = max(self.worst, need.worst)
        self.by_rule[report.rule] += 1
        one, two = need.fails("1"), need.fails("1+2")
        self.beyond_one += int(one.sum())
        self.beyond_two += int(two.sum())
        self.factor = max(self.factor, largest(need.factor[one]))
        few, many = largest(need.few[two]), largest(torch.minimum(need.few, need.many)[two])
        self.few, self.many = max(self.few, few), max(self.many, many)
        if many:
            ulp, before = self.paths.get(path, (0.0, 0.0))
            self.paths[path] = (max(ulp, largest(need.ulp[two])), max(before, many))
        if failed := int(need.fails().sum()) + need.special:
            self.flagged[path] += failed
        for limit in ULP_LIMITS[need.dtype.itemsize]:
            for rules in RULES:
                self.limits[limit, rules] += int(need.fails(rules, limit=limit).sum())
        for factor in REFERENCE_FACTORS:
            self.references[factor] += int(need.fails(reference=factor).sum())
        for factor in NOISE_FACTORS:
            self.noises[factor] += int(need.fails(noise=factor).sum())


def largest(values: torch.Tensor) -> float:
    return float(values.max()) if values.numel() else 0.0


def compared(program: Program, seed: int, dtype: torch.dtype) -> Iterator[tuple[str, Any, Any]]:
    """(path, needs or None for what is not float, the rule's own report) of each result."""
    inputs = program.draw(seed, dtype)

    def run(mode: Mode, read: Read, compiled: bool = False) -> Tensors:
        return program.run(inputs, mode, read, compiled=compiled)

    eager = run(contextlib.nullcontext(), torch.Tensor.detach)
    compiled = run(contextlib.nullcontext(), torch.Tensor.detach, compiled=True)
    again = EagerAgain(run)
    for path, value in eager.items():
        if path not in compiled:
            raise RuntimeError(f"{program.name}: compiled has no {path}")
        report = compare.tensors(value, compiled[path], path, again)
        if value.is_floating_point() or value.is_complex():
            part = torch.view_as_real(value).dtype if value.is_complex() else value.dtype
            least = min(ULP_LIMITS[part.itemsize])
            yield path, needs(value, compiled[path], path, again, least), report
        else:
            yield path, None, report


def main() -> None:
    """Provisional: one line per program and dtype."""
    seeds, *only = sys.argv[1:]
    warnings.filterwarnings("ignore")
    for program in battery.programs():
        if only and not any(word in program.name for word in only):
            continue
        for dtype in program.dtypes:
            torch._dynamo.reset()
            tally = Tally(dtype)
            for seed in range(int(seeds)):
                for path, need, report in compared(program, seed, dtype):
                    if need is not None:
                        tally.add(path, need, report)
            print(
                f"{program.name:26} {str(dtype)[6:]:9} worst {tally.worst:9.3g} "
                f"beyond 1 {tally.beyond_one:6} factor {tally.factor:8.3g} "
                f"beyond 2 {tally.beyond_two:5} noise {tally.few:8.3g} {tally.many:8.3g} "
                f"{dict(tally.by_rule)} flagged {dict(tally.flagged)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
