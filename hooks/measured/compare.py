"""The parity rule: what counts as the same result. Pure functions on tensors and trees.

Integers and booleans must be equal. NaN and infinities must stand in the same places. Every
other float element passes by the first of these rules that holds:

1. it is within `ULP_LIMIT` units in the last place of eager's value, in the tensor's own dtype;
2. it is not further from a float64 run of eager than `REFERENCE_FACTOR` times eager's own
   distance from it plus `REFERENCE_ULP` units in the last place;
3. it is within `NOISE_FACTOR` times the noise of eager: how far eager itself moves when the float
   operands and results of all operations move by half a unit in the last place on average.

Rules 2 and 3 are asked only where elements fail the rules before them, because both need eager
to run again.

The unit in the last place of values below the smallest normal number is that of the smallest
normal number. Signed zeros are equal: eager itself does not keep the sign under reordering.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch

from measured.constants import (
    MORE_NOISE_RUNS,
    NOISE_FACTOR,
    NOISE_RUNS,
    REFERENCE_FACTOR,
    REFERENCE_ULP,
    ULP_LIMIT,
)
from measured.record import RULES, Difference


class Reference(Protocol):
    """Further runs of eager, made when a comparison asks for them."""

    def float64(self, path: str) -> torch.Tensor | None:
        """The tensor at `path` from a float64 run of eager, or None where there is none."""

    def noise(self, path: str, runs: int) -> torch.Tensor | None:
        """How far, in float64, each element of the tensor at `path` moved at most from eager's
        value in at least `runs` runs of jittered eager; None where there is none."""


class NoReference:
    """For callers that can not run eager again: every float must pass by rule 1."""

    def float64(self, path: str) -> None:
        return None

    def noise(self, path: str, runs: int) -> None:
        return None


@dataclasses.dataclass
class Report:
    """What a comparison found."""

    differences: list[Difference] = dataclasses.field(default_factory=list)
    max_ulp: float = 0.0
    rule: str = "equal"

    def merge(self, other: Report) -> None:
        self.differences += other.differences
        self.max_ulp = max(self.max_ulp, other.max_ulp)
        self.rule = max(self.rule, other.rule, key=RULES.index)


def leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Depth-first (path, leaf) of dicts, lists, tuples, named tuples and dataclasses."""
    children = _children(tree)
    if children is None:
        yield path, tree
        return
    for suffix, child in children:
        yield from leaves(child, path + suffix)


def _children(tree: Any) -> list[tuple[str, Any]] | None:
    if isinstance(tree, Mapping):
        return [(f"[{key!r}]", tree[key]) for key in tree]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(f".{name}", getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, (list, tuple)):
        return [(f"[{index}]", item) for index, item in enumerate(tree)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f".{f.name}", getattr(tree, f.name, None)) for f in dataclasses.fields(tree)]
    return None


def trees(eager: Any, compiled: Any, path: str, reference: Reference | None = None) -> Report:
    """Compare two results: Python types, structure, and every leaf."""
    reference = reference or NoReference()
    report = Report()
    if type(eager) is not type(compiled):
        report.differences.append(
            Difference(
                kind="type",
                path=path,
                message=f"eager gives {_name(eager)}, compiled gives {_name(compiled)}",
            )
        )
        return report
    mine, theirs = _children(eager), _children(compiled)
    if mine is None or theirs is None:
        report.merge(_leaf(eager, compiled, path, reference))
        return report
    if [suffix for suffix, _ in mine] != [suffix for suffix, _ in theirs]:
        report.differences.append(
            Difference(
                kind="structure",
                path=path,
                message=f"eager has {_keys(mine)}, compiled has {_keys(theirs)}",
            )
        )
        return report
    for (suffix, left), (_, right) in zip(mine, theirs, strict=True):
        report.merge(trees(left, right, path + suffix, reference))
    return report


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _keys(children: list[tuple[str, Any]]) -> str:
    return ", ".join(suffix for suffix, _ in children[:8]) or "nothing"


def _leaf(eager: Any, compiled: Any, path: str, reference: Reference) -> Report:
    if isinstance(eager, torch.Tensor):
        return tensors(eager, compiled, path, reference)
    report = Report()
    if isinstance(eager, float):
        # A Python float is a float64: the same rules hold for it.
        pair = (torch.tensor(value, dtype=torch.float64) for value in (eager, compiled))
        report.merge(_floats(*pair, path, reference))
    elif isinstance(eager, (int, str, bytes, bool, complex, type(None))) and eager != compiled:
        report.differences.append(
            Difference(
                kind="value", path=path, message="", eager=repr(eager), compiled=repr(compiled)
            )
        )
    return report


def tensors(
    eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference | None = None
) -> Report:
    """Compare two tensors: metadata first, then every element."""
    reference = reference or NoReference()
    report = Report()
    facts = ["dtype", "device", "layout", "shape", "requires_grad"]
    for fact in facts:
        left, right = getattr(eager, fact), getattr(compiled, fact)
        if left != right:
            report.differences.append(
                Difference(
                    kind=fact,
                    path=path,
                    message=f"eager has {fact} {_fact(left)}, compiled has {_fact(right)}",
                    shape=str(tuple(eager.shape)),
                    dtype=str(eager.dtype),
                )
            )
    if any(difference.kind != "requires_grad" for difference in report.differences):
        return report
    if eager.layout is torch.strided:
        left, right = _observable_strides(eager), _observable_strides(compiled)
        if left != right:
            report.differences.append(
                Difference(
                    kind="stride",
                    path=path,
                    message=f"eager has strides {eager.stride()}, compiled has {compiled.stride()}",
                    shape=str(tuple(eager.shape)),
                    dtype=str(eager.dtype),
                )
            )
    with torch.no_grad():
        report.merge(_values(_plain(eager), _plain(compiled), path, reference))
    return report


def _fact(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value)


def _observable_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides that a program can tell apart: none of size-1 dimensions, none of empty tensors."""
    if tensor.numel() == 0:
        return ()
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return tuple(stride for size, stride in pairs if size != 1)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The stored numbers as an ordinary dense tensor."""
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


class _Parts:
    """A reference for the real and imaginary parts of complex tensors."""

    def __init__(self, whole: Reference) -> None:
        self._whole = whole

    def float64(self, path: str) -> torch.Tensor | None:
        precise = self._whole.float64(path)
        return None if precise is None else torch.view_as_real(precise)

    def noise(self, path: str, runs: int) -> torch.Tensor | None:
        return self._whole.noise(path, runs)


def _values(eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference) -> Report:
    if eager.dtype.is_complex:
        parts = _Parts(reference)
        return _floats(torch.view_as_real(eager), torch.view_as_real(compiled), path, parts)
    if eager.dtype.is_floating_point:
        return _floats(eager, compiled, path, reference)
    report = Report()
    wrong = eager != compiled
    if bool(wrong.any()):
        index, count = _first(wrong), int(wrong.sum())
        report.differences.append(
            Difference(
                kind="value",
                path=path,
                message=_elements(count, wrong.numel()),
                shape=str(tuple(eager.shape)),
                dtype=str(eager.dtype),
                index=str(index),
                eager=str(eager[index].item()),
                compiled=str(compiled[index].item()),
                rule="integers and booleans must be equal",
            )
        )
    return report


def _floats(eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference) -> Report:
    report = Report()
    # torch.equal first: it needs no temporaries, and most tensors are equal.
    if eager.numel() == 0 or torch.equal(eager, compiled):
        return report
    dtype = eager.dtype
    left, right = eager.to(torch.float64), compiled.to(torch.float64)
    if (special := _special(left, right, path, dtype)) is not None:
        report.differences.append(special)
        report.rule = "none"
        return report
    finite = torch.isfinite(left)
    distance = torch.where(finite, (right - left).abs(), 0.0)
    in_ulp = distance / ulp(left, dtype)
    report.max_ulp = float(in_ulp.nan_to_num(0.0).max())
    if report.max_ulp == 0.0:
        return report
    report.rule = "ulp"
    wrong = in_ulp > ULP_LIMIT
    if not bool(wrong.any()):
        return report
    precise = reference.float64(path)
    if precise is not None:
        precise = precise.to(torch.float64)
        allowed = REFERENCE_FACTOR * (left - precise).abs() + REFERENCE_ULP * ulp(left, dtype)
        # A reference that is not finite where eager is says nothing about that element.
        wrong &= ~(torch.isfinite(precise) & ((right - precise).abs() <= allowed))
        if not bool(wrong.any()):
            report.rule = "float64"
            return report
    for runs in (NOISE_RUNS, NOISE_RUNS + MORE_NOISE_RUNS):
        noise = reference.noise(path, runs)
        if noise is None:
            break
        wrong &= ~(distance <= NOISE_FACTOR * noise)
        if not bool(wrong.any()):
            report.rule = "noise"
            return report
    report.rule = "none"
    worst = torch.where(wrong, in_ulp, -1.0).flatten().argmax()
    index = tuple(int(i) for i in torch.unravel_index(worst, left.shape))
    relative = distance / left.abs().clamp_min(torch.finfo(dtype).tiny)
    report.differences.append(
        Difference(
            kind="value",
            path=path,
            message=_elements(int(wrong.sum()), wrong.numel()),
            shape=str(tuple(eager.shape)),
            dtype=str(dtype),
            index=str(index),
            eager=repr(float(left[index])),
            compiled=repr(float(right[index])),
            float64="" if precise is None else repr(float(precise[index])),
            max_absolute=float(distance.max()),
            max_relative=float(relative.max()),
            max_ulp=report.max_ulp,
            rule=_rejection(precise, noise, index),
        )
    )
    return report


def _rejection(
    precise: torch.Tensor | None, noise: torch.Tensor | None, index: tuple[int, ...]
) -> str:
    """Why no rule let an element pass."""
    parts = [f"more than {ULP_LIMIT} ULP from eager"]
    if precise is not None:
        parts.append(
            f"more than {REFERENCE_FACTOR} times eager's own distance plus {REFERENCE_ULP} ULP "
            "from a float64 run of eager"
        )
    if noise is not None:
        parts.append(f"more than {NOISE_FACTOR} times eager's noise of {float(noise[index]):.3g}")
    if precise is None and noise is None:
        parts.append("and eager could not be run again")
    return ", ".join(parts)


def ulp(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance from each value to the next larger number of `dtype`, in float64.

    Below the smallest normal number it is that of the smallest normal number, as it is for the
    numbers themselves: denormals are evenly spaced.
    """
    info = torch.finfo(dtype)
    magnitude = values.abs().clamp_min(info.tiny)
    _, exponent = torch.frexp(magnitude)
    return torch.ldexp(torch.full_like(magnitude, info.eps), exponent - 1)


def _special(
    left: torch.Tensor, right: torch.Tensor, path: str, dtype: torch.dtype
) -> Difference | None:
    """NaN and infinities must stand in the same places, infinities with the same sign."""
    for kind, wrong in (
        ("nan", left.isnan() != right.isnan()),
        ("inf", (left.isinf() | right.isinf()) & (left != right)),
    ):
        # Where one side is NaN the other test already spoke.
        wrong &= ~(left.isnan() & right.isnan())
        if bool(wrong.any()):
            index = _first(wrong)
            return Difference(
                kind=kind,
                path=path,
                message=_elements(int(wrong.sum()), wrong.numel()),
                shape=str(tuple(left.shape)),
                dtype=str(dtype),
                index=str(index),
                eager=repr(float(left[index])),
                compiled=repr(float(right[index])),
                rule="NaN and infinities must stand in the same places",
            )
    return None


def _first(mask: torch.Tensor) -> tuple[int, ...]:
    flat = mask.flatten().to(torch.uint8).argmax()
    return tuple(int(i) for i in torch.unravel_index(flat, mask.shape))


def _elements(count: int, total: int) -> str:
    return f"{count} of {total} elements differ"
