"""`python -m measured.calibrate`: what the parity rule says of programs whose answer is known.

Innocent programs must pass, and the record says by how much; planted faults and real differences
must not. Nothing is timed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import torch

from measured import battery, committed, compare, constants
from measured.battery import Mode, Program, Read, Tensors
from measured.constants import MORE_NOISE_RUNS, NOISE_RUNS, REFERENCE_FACTOR
from measured.record import RULES
from measured.reference import Float64Shadow, Jitter

Run = Callable[[Mode, Read], Tensors]

CONSTANTS = (
    "ULP_LIMIT", "HALF_ULP_LIMIT", "FLOAT8_ULP_LIMIT", "REFERENCE_FACTOR", "REFERENCE_ULP",
    "HALF_REFERENCE_ULP", "NOISE_FACTOR", "HALF_NOISE_FACTOR", "WIDE_UNITS", "NOISE_RUNS",
    "MORE_NOISE_RUNS",
)  # fmt: skip
"""What the rule depends on: a record of other values says nothing about it."""


def the_constants() -> dict[str, int]:
    return {name: getattr(constants, name) for name in CONSTANTS}


class EagerAgain:
    """The reference of an audit, for a function of tensors: further eager runs when asked."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._squares: Tensors = {}
        self._runs = 0

    def float64(self, path: str, places: torch.Tensor) -> torch.Tensor | None:
        return self._float64[path][places].to(torch.float64) if path in self._float64 else None

    @functools.cached_property
    def _float64(self) -> Tensors:
        shadow = Float64Shadow()
        return self._flat(shadow, shadow.shadow)

    @functools.cached_property
    def _base(self) -> Tensors:
        return self._flat(contextlib.nullcontext(), torch.Tensor.detach)

    def noise(self, path: str, places: torch.Tensor, runs: int) -> torch.Tensor | None:
        while self._runs < runs:
            for key, value in self._flat(Jitter(self._runs), torch.Tensor.detach).items():
                moved = value.to(torch.float64).sub_(self._base[key])
                square = moved.nan_to_num_(0.0, 0.0, 0.0).square_()
                self._squares[key] = self._squares[key].add_(square) if self._runs else square
            self._runs += 1
        return (self._squares[path][places] / self._runs).sqrt_()

    def moves(self, path: str, value: Any) -> bool:
        return False

    def _flat(self, mode: Mode, read: Read) -> Tensors:
        return {path: flat(value) for path, value in self._run(mode, read).items()}


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """In one dimension, complex numbers as their two parts."""
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.reshape(-1)


def needed_factors(
    eager: torch.Tensor,
    compiled: torch.Tensor,
    path: str,
    places: torch.Tensor,
    again: compare.Reference,
) -> torch.Tensor:
    """Smallest noise factor with which each element at `places` would pass.

    0 where rule 2 lets it pass; infinite where eager does not move, or where NaN or infinity stands
    on one side only.
    """
    dtype = eager.real.dtype
    left, right = (flat(tensor)[places].to(torch.float64) for tensor in (eager, compiled))
    distance = (right - left).abs()
    needed = torch.full_like(distance, math.inf)
    precise = again.float64(path, places)
    if precise is not None:
        allowed = REFERENCE_FACTOR * (left - precise).abs()
        allowed += compare.reference_ulp(dtype) * compare.ulp(left, dtype)
        near = precise.isfinite() & ((right - precise).abs() <= allowed)
        needed[near & left.isfinite() & right.isfinite()] = 0.0
    for runs in (NOISE_RUNS, NOISE_RUNS + MORE_NOISE_RUNS):
        # Below half of what the rule allows, the further runs can tell nothing new.
        if not bool((needed > compare.noise_factor(dtype) / 2).any()):
            break
        noise = again.noise(path, places, runs)
        if noise is None:
            break
        factor = torch.where(noise > 0, distance / noise, math.inf)
        needed = torch.minimum(needed, factor.nan_to_num(math.inf, math.inf))
    return needed


@dataclasses.dataclass
class Tally:
    """What one program showed in one dtype, over all seeds."""

    name: str
    dtype: str
    tensors: int = 0
    elements: int = 0
    worst_ulp: float = 0.0
    needed: float = 0.0
    """Noise factor with which all that rules 1 and 2 do not let pass would pass."""
    rule: str = "equal"
    """The weakest rule that a tensor needed."""
    flagged: int = 0
    """Tensors in which the rule finds a difference."""
    paths: dict[str, float] = dataclasses.field(default_factory=dict)
    """Their paths, and the factor that each would have needed."""

    def add(self, path: str, elements: int, report: compare.Report, needed: float) -> None:
        self.tensors += 1
        self.elements += elements
        self.worst_ulp = max(self.worst_ulp, report.max_ulp)
        self.needed = max(self.needed, needed)
        self.rule = max(self.rule, report.rule, key=RULES.index)
        if report.differences:
            self.flagged += 1
            self.paths[path] = max(needed, self.paths.get(path, 0.0))

    def row(self) -> dict[str, Any]:
        found = dataclasses.asdict(self)
        del found["paths"]
        return found | {"worst_ulp": rounded(self.worst_ulp), "needed": rounded(self.needed)}


def rounded(value: float) -> float | None:
    """To three digits; None for what no number is enough for."""
    return float(f"{value:.3g}") if math.isfinite(value) else None


def tally(program: Program, dtype: torch.dtype, seeds: int) -> Tally:
    """Run a program compiled and in eager from each seed, and ask the rule."""
    torch._dynamo.reset()
    found = Tally(program.name, str(dtype).removeprefix("torch."))
    for seed in range(seeds):
        for path, elements, report, needed in _compared(program, seed, dtype):
            found.add(path, elements, report, needed)
    return found


def _compared(
    program: Program, seed: int, dtype: torch.dtype
) -> Iterator[tuple[str, int, compare.Report, float]]:
    inputs = program.draw(seed, dtype)

    def run(mode: Mode, read: Read, compiled: bool = False) -> Tensors:
        return program.run(inputs, mode, read, compiled=compiled)

    eager = run(contextlib.nullcontext(), torch.Tensor.detach)
    compiled = run(contextlib.nullcontext(), torch.Tensor.detach, compiled=True)
    again = EagerAgain(run)
    for path, value in eager.items():
        report = compare.tensors(value, compiled[path], path, again)
        places = report.suspects.get(path)
        needed = 0.0
        if places is not None:
            needed = float(needed_factors(value, compiled[path], path, places, again).max())
        yield path, value.numel(), report, needed


OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b * 1.0,
    "exp": lambda a, _: torch.exp(a),
    "sqrt": lambda a, _: torch.sqrt(a),
    "gelu": lambda a, _: torch.nn.functional.gelu(a),
}
"""Single element-wise operations in which faults are planted."""

FAULTS = {8: (17, 32), 4: (17, 32), 2: (3, 4, 8, 32)}
"""Sizes of planted faults, in ULP, by size of the element in bytes."""


def planted_at(
    values: torch.Tensor, units: int, places: torch.Tensor | slice = slice(None)
) -> torch.Tensor:
    """A copy of `values` whose elements at `places` are `units` ULP further from 0."""
    wrong = values.clone()
    there = values[places].to(torch.float64)
    step = units * compare.ulp(there, values.dtype)
    wrong[places] = (there + torch.where(there < 0, -step, step)).to(values.dtype)
    return wrong


def operands(
    name: str, dtype: torch.dtype, scale: float, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one size, well away from overflow and denormals of the result."""
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.rand(count, generator=generator).add_(0.5) for _ in range(2))
    return a.mul_(scale).to(dtype), b.mul_(1.0 if name == "mul" else scale).to(dtype)


class Bench:
    """Single operations in which faults of any size can be planted, with one measure of noise."""

    def __init__(
        self,
        dtype: torch.dtype,
        scale: float,
        count: int,
        names: Iterable[str] = tuple(OPERATIONS),
    ) -> None:
        self._dtype = dtype
        self._operands = {name: operands(name, dtype, scale, count) for name in names}
        self._eager = self._run(contextlib.nullcontext(), torch.Tensor.detach)
        self._again = EagerAgain(self._run)

    def _run(self, mode: Mode, read: Read) -> Tensors:
        with mode:
            results = {name: OPERATIONS[name](*pair) for name, pair in self._operands.items()}
        return {name: read(result).clone() for name, result in results.items()}

    def caught(self, name: str, units: int, places: torch.Tensor | slice = slice(None)) -> float:
        """Share of the faulty elements that the rule finds."""
        eager = self._eager[name]
        wrong = planted_at(eager, units, places)
        report = compare.tensors(eager, wrong, name, self._again)
        if not report.differences:
            return 0.0
        needed = needed_factors(eager, wrong, name, report.suspects[name], self._again)
        found = int((needed > compare.noise_factor(self._dtype)).sum())
        return found / eager[places].numel()


def planted() -> Iterator[dict[str, Any]]:
    """Rows: the operation in which the smallest share of the faults was caught."""
    for dtype in battery.FLOATS:
        for scale in (1.0, 1e-3) if dtype == torch.float16 else (1.0, 1e-8):
            bench = Bench(dtype, scale, 10_000)
            for units in FAULTS[dtype.itemsize]:
                shares = {name: bench.caught(name, units) for name in OPERATIONS}
                worst = min(shares, key=lambda name: shares[name])
                yield _planted(dtype, scale, units, 10_000, 10_000, worst, shares[worst])
    for dtype in battery.USUAL:
        share = Bench(dtype, 1.0, 10_000_000, ["mul"]).caught("mul", 32, torch.tensor([7_654_321]))
        yield _planted(dtype, 1.0, 32, 1, 10_000_000, "mul", share)


def _planted(
    dtype: torch.dtype,
    scale: float,
    units: int,
    faults: int,
    elements: int,
    operation: str,
    share: float,
) -> dict[str, Any]:
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "scale": scale,
        "units": units,
        "faults": faults,
        "elements": elements,
        "caught": rounded(share),
        "operation": operation,
    }


Rows = list[dict[str, Any]]


def _rows(
    programs: list[Program], seeds: int, only: tuple[str, ...], known: Rows
) -> Iterator[dict[str, Any]]:
    found = {(row["name"], row["dtype"]): row for row in known}
    for program in programs:
        if only and not any(word in program.name for word in only):
            continue
        for dtype in program.dtypes:
            row = found.get((program.name, str(dtype).removeprefix("torch.")))
            if row is None:
                told = tally(program, dtype, seeds)
                flagged = {path: rounded(factor) for path, factor in told.paths.items()}
                click.echo(f"{told.row()} {flagged or ''}")
                row = told.row()
            yield row


def _planted_rows(known: Rows) -> Iterable[dict[str, Any]]:
    sizes = (2 * len(FAULTS[dtype.itemsize]) for dtype in battery.FLOATS)
    return known if len(known) == sum(sizes) + len(battery.USUAL) else planted()


def _totals(innocent: Rows) -> dict[str, int]:
    return {
        "programs": len({row["name"] for row in innocent}),
        "tensors": sum(row["tensors"] for row in innocent),
        "elements": sum(row["elements"] for row in innocent),
        "flagged": sum(row["flagged"] for row in innocent),
    }


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--only", multiple=True, help="Programs whose name holds one of these words.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON here.")
@click.option("--resume", is_flag=True, help="Keep the rows of --out, if its rule is this one.")
def main(seeds: int, only: tuple[str, ...], out: Path | None, resume: bool) -> None:
    """Ask the parity rule about programs whose answer is known."""
    warnings.filterwarnings("ignore")
    here = committed.facts()
    facts = {
        "torch": here["torch"],
        "cpu": here["cpu"],
        "seeds": seeds,
        "constants": the_constants(),
    }
    known: dict[str, Any] = {}
    if resume and out and out.is_file():
        known = json.loads(out.read_text(encoding="utf-8"))
        if {name: known.get(name) for name in facts} != facts:
            raise click.UsageError(f"{out} is of another rule, torch, machine or number of seeds")
    parts: dict[str, Iterable[dict[str, Any]]] = {
        "bugs": _rows(battery.different(), 1, only, known.get("bugs", [])),
        "planted": () if only else _planted_rows(known.get("planted", [])),
        "innocent": _rows(battery.programs(), seeds, only, known.get("innocent", [])),
    }
    record: dict[str, Any] = {"date": here["date"], **facts}
    record |= {name: known.get(name, []) for name in parts}
    for name, rows in parts.items():
        made: Rows = []
        for row in rows:
            made.append(row)
            if len(made) >= len(record[name]):
                record[name] = made
            record["totals"] = _totals(record["innocent"])
            if out:  # After each row: a run that is stopped leaves what it has found.
                committed.write(record, out)


if __name__ == "__main__":
    main()
