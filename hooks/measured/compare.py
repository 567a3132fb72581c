"""The parity rule: what counts as the same result. Pure functions on tensors and trees.

Integers and booleans must be equal. NaN and infinities must stand in the same places. Every
other float element passes by the first of these rules that holds:

1. it is within a few units in the last place of eager's value, in the tensor's own dtype: the
   number is `ulp_limit(dtype)`;
2. it is not further from a float64 run of eager than `REFERENCE_FACTOR` times eager's own
   distance from it plus `reference_ulp(dtype)` units in the last place;
3. it is within `noise_factor(dtype)` times the noise of eager: the root mean square of how far
   eager itself moves when floats move, wherever an operation rounds, by about that much
   (`reference.Jitter`).

Rules 2 and 3 are asked only where elements fail the rules before them, because both need eager
to run again. What no rule lets pass is a difference, unless eager itself does not give that
element again.

The unit in the last place of values below the smallest normal number is that of the smallest
normal number. Signed zeros are equal: eager itself does not keep the sign under reordering. So
are NaN of any sign and payload.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import torch

from measured.constants import (
    FLOAT8_ULP_LIMIT,
    HALF_NOISE_FACTOR,
    HALF_REFERENCE_ULP,
    HALF_ULP_LIMIT,
    MAX_SUSPECTS,
    MORE_NOISE_RUNS,
    NOISE_FACTOR,
    NOISE_RUNS,
    REFERENCE_FACTOR,
    REFERENCE_ULP,
    ULP_LIMIT,
)
from measured.holders import Stream
from measured.reach import is_instance_of_program
from measured.record import RULES, Difference

ABSENT = object()
"""Stands for a value where there is none."""


class Reference(Protocol):
    """Further runs of eager, made when a comparison asks for them."""

    def float64(self, path: str, places: torch.Tensor) -> torch.Tensor | None:
        """Elements of the tensor at `path` from a float64 run of eager, or None where there is
        none. `places` are flat indices; a complex tensor counts as its parts, side by side."""

    def noise(self, path: str, places: torch.Tensor, runs: int) -> torch.Tensor | None:
        """Root mean square, in float64, of how far these elements moved from eager's values in at
        least `runs` runs of jittered eager; None where there is none."""

    def moves(self, path: str, value: Any) -> torch.Tensor | bool:
        """Whether eager, run again, gives something else at `path` than `value`, which is `ABSENT`
        where eager has nothing there; for a tensor of unchanged shape, where (a boolean tensor)."""


class NoReference:
    """For callers that can not run eager again: every float must pass by rule 1."""

    def float64(self, path: str, places: torch.Tensor) -> None:
        return None

    def noise(self, path: str, places: torch.Tensor, runs: int) -> None:
        return None

    def moves(self, path: str, value: Any) -> bool:
        return False


@dataclasses.dataclass
class Report:
    """What a comparison found."""

    differences: list[Difference] = dataclasses.field(default_factory=list)
    max_ulp: float = 0.0
    rule: str = "equal"
    """The weakest rule by which a tensor passed."""
    unsettled: list[str] = dataclasses.field(default_factory=list)
    """Paths at which eager does not give the same again, so that nothing can be said."""
    suspects: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    """Path of a float tensor -> flat indices of the elements that rule 1 does not let pass."""

    def merge(self, other: Report) -> None:
        self.differences += other.differences
        self.max_ulp = max(self.max_ulp, other.max_ulp)
        self.rule = max(self.rule, other.rule, key=RULES.index)
        self.unsettled += other.unsettled
        self.suspects |= other.suspects


@dataclasses.dataclass(frozen=True)
class Inner:
    """A place in a tree that has parts: the type of what stands there, and its keys."""

    type: str
    keys: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Thing:
    """An object that is not looked into: only which one it is, or what kind, can be told."""

    type: str
    known_as: str | None
    """Path of the object before the call, where it is one that was there already."""


def nodes(tree: Any, path: str) -> dict[str, Any]:
    """Path -> leaf, or `Inner`, of dicts, lists, tuples, named tuples, dataclasses and objects of
    the program, depth first. A place that leads back to itself is a leaf there."""
    found: dict[str, Any] = {}
    _collect(tree, path, found, ())
    return found


def leaves(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(path, leaf) of a tree, depth first."""
    yield from ((p, leaf) for p, leaf in nodes(tree, path).items() if not isinstance(leaf, Inner))


def _collect(tree: Any, path: str, found: dict[str, Any], above: tuple[int, ...]) -> None:
    children = None if id(tree) in above else _children(tree)
    if children is None:
        found[path] = tree
        return
    found[path] = Inner(_name(tree), tuple(suffix for suffix, _ in children))
    for suffix, child in children:
        _collect(child, path + suffix, found, (*above, id(tree)))


def _children(tree: Any) -> list[tuple[str, Any]] | None:
    if isinstance(tree, (torch.Tensor, type)):
        return None
    if isinstance(tree, Mapping):
        return [(f"[{key!r}]", tree[key]) for key in tree]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(f".{name}", getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, (list, tuple)):
        return [(f"[{index}]", item) for index, item in enumerate(tree)]
    if isinstance(tree, (set, frozenset)):
        return [(f".has({item!r})", True) for item in sorted(tree, key=repr) if _is_plain(item)]
    if dataclasses.is_dataclass(tree):
        return [(f".{f.name}", getattr(tree, f.name, None)) for f in dataclasses.fields(tree)]
    if is_instance_of_program(tree) and hasattr(tree, "__dict__"):
        return [(f".{name}", value) for name, value in vars(tree).items()]
    return None


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, complex, str, bytes, bool, type(None)))


def is_value(value: Any) -> bool:
    """Whether two of its kind are the same when they are equal."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return True
    return _is_plain(value) or isinstance(value, (Stream, Inner, *_CONSTANTS))


def trees(eager: Any, compiled: Any, path: str, reference: Reference | None = None) -> Report:
    """Compare two results: Python types, structure, and every leaf."""
    return places(nodes(eager, path), nodes(compiled, path), reference)


def places(
    eager: Mapping[str, Any], compiled: Mapping[str, Any], reference: Reference | None = None
) -> Report:
    """Compare what stands at each path: leaves, `Inner` places, random streams."""
    reference = reference or NoReference()
    report = Report()
    reported: list[str] = []
    for path in [*eager, *(path for path in compiled if path not in eager)]:
        if any(path.startswith(above) for above in reported):
            continue
        found = _place(eager, compiled, path, reference)
        if any(difference.kind in ("type", "structure") for difference in found.differences):
            reported.append(path)
        report.merge(found)
    return report


def _place(
    eager: Mapping[str, Any], compiled: Mapping[str, Any], path: str, reference: Reference
) -> Report:
    if path not in eager or path not in compiled:
        message = f"only in {'eager' if path in eager else 'compiled'}"
        there = {
            "eager": _shown(eager[path]) if path in eager else "absent",
            "compiled": _shown(compiled[path]) if path in compiled else "absent",
        }
        return _unless_moves(
            Difference("structure", path, message, **there), eager.get(path, ABSENT), reference
        )
    left, right = eager[path], compiled[path]
    if isinstance(left, Inner) and isinstance(right, Inner):
        return _inner(left, right, path, reference)
    if type(left) is not type(right):
        if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
            message = f"eager gives {_name(left)}, compiled gives {_name(right)}"
        else:
            message = f"eager gives {_shown(left)}, compiled gives {_shown(right)}"
        return _unless_moves(Difference("type", path, message), left, reference)
    return _leaf(left, right, path, reference)


def _inner(left: Inner, right: Inner, path: str, reference: Reference) -> Report:
    if left.type != right.type:
        message = f"eager gives {left.type}, compiled gives {right.type}"
        return _unless_moves(Difference("type", path, message), left, reference)
    if left.keys != right.keys:
        message = f"eager has {_keys(left)}, compiled has {_keys(right)}"
        return _unless_moves(Difference("structure", path, message), left, reference)
    return Report()


def _unless_moves(difference: Difference, value: Any, reference: Reference) -> Report:
    if reference.moves(difference.path, value) is False:
        return Report([difference])
    return Report(unsettled=[difference.path])


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _shown(value: Any) -> str:
    if isinstance(value, (Inner, Thing)):
        return value.type
    return repr(value)[:80] if _is_plain(value) else _name(value)


def _keys(inner: Inner) -> str:
    return ", ".join(inner.keys[:8]) or "nothing"


def _leaf(eager: Any, compiled: Any, path: str, reference: Reference) -> Report:
    numpy = sys.modules.get("numpy")
    if isinstance(eager, torch.Tensor):
        return tensors(eager, compiled, path, reference)
    if numpy is not None and isinstance(eager, (numpy.ndarray, numpy.generic)):
        return _arrays(eager, compiled, path, reference)
    if isinstance(eager, float):
        # A Python float is a float64: the same rules hold for it.
        return _floats(as_tensor(eager), as_tensor(compiled), path, reference)
    if isinstance(eager, Stream):
        message = "the two leave the random stream in different states"
        difference = Difference("rng", path, message)
        return Report() if eager == compiled else _unless_moves(difference, eager, reference)
    if isinstance(eager, Thing) or _is_plain(eager) or isinstance(eager, _CONSTANTS):
        if eager == compiled:
            return Report()
        shown = [
            f"the object that was {value.known_as}"
            if isinstance(value, Thing) and value.known_as
            else _shown(value)
            if isinstance(value, Thing)
            else repr(value)[:200]
            for value in (eager, compiled)
        ]
        difference = Difference("value", path, "", eager=shown[0], compiled=shown[1])
        return _unless_moves(difference, eager, reference)
    return Report()


_CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def _arrays(eager: Any, compiled: Any, path: str, reference: Reference) -> Report:
    """NumPy's arrays and scalars."""
    if eager.dtype != compiled.dtype:
        message = f"eager has dtype {eager.dtype}, compiled has {compiled.dtype}"
        return _unless_moves(Difference("dtype", path, message), eager, reference)
    left, right = as_tensor(eager), as_tensor(compiled)
    if isinstance(left, torch.Tensor):
        return tensors(left, right, path, reference)
    same = eager.shape == compiled.shape and bool((eager == compiled).all())
    difference = Difference("value", path, "the arrays differ")
    return Report() if same else _unless_moves(difference, eager, reference)


def as_tensor(value: Any) -> Any:
    """A copy of a NumPy array or scalar, or of a Python float, as a tensor; else the value."""
    if type(value) is float:
        return torch.tensor(value, dtype=torch.float64)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return value
    try:
        return torch.from_numpy(numpy.array(value))
    except TypeError:  # Text, objects, dates.
        return value


def tensors(
    eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference | None = None
) -> Report:
    """Compare two tensors: metadata first, then every element."""
    reference = reference or NoReference()
    report = Report()
    for fact in ("dtype", "device", "layout", "shape", "requires_grad"):
        left, right = getattr(eager, fact), getattr(compiled, fact)
        if left != right:
            report.differences.append(
                _metadata(
                    fact,
                    eager,
                    path,
                    f"eager has {fact} {_fact(left)}, compiled has {_fact(right)}",
                )
            )
    if any(difference.kind != "requires_grad" for difference in report.differences):
        if reference.moves(path, eager) is True:
            return Report(unsettled=[path])
        return report
    if eager.layout is torch.strided and _observable_strides(eager) != _observable_strides(
        compiled
    ):
        report.differences.append(
            _metadata(
                "stride",
                eager,
                path,
                f"eager has strides {eager.stride()}, compiled has {compiled.stride()}",
            )
        )
    if eager.device.type == "meta":
        return report  # It has no values.
    with torch.no_grad():
        report.merge(_values(_plain(eager), _plain(compiled), path, reference))
    return report


def _metadata(kind: str, eager: torch.Tensor, path: str, message: str) -> Difference:
    return Difference(kind, path, message, shape=str(tuple(eager.shape)), dtype=str(eager.dtype))


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
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    return tensor.resolve_conj().resolve_neg()


class _Parts:
    """A reference for the real and imaginary parts of complex tensors."""

    def __init__(self, whole: Reference) -> None:
        self._whole = whole

    def float64(self, path: str, places: torch.Tensor) -> torch.Tensor | None:
        return self._whole.float64(path, places)

    def noise(self, path: str, places: torch.Tensor, runs: int) -> torch.Tensor | None:
        return self._whole.noise(path, places, runs)

    def moves(self, path: str, value: Any) -> torch.Tensor | bool:
        moved = self._whole.moves(path, torch.view_as_complex(value))
        if isinstance(moved, torch.Tensor):
            return moved.unsqueeze(-1).expand(*moved.shape, 2)
        return moved


def _values(eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference) -> Report:
    if eager.dtype.is_complex:
        parts = _Parts(reference)
        return _floats(torch.view_as_real(eager), torch.view_as_real(compiled), path, parts)
    if eager.dtype.is_floating_point:
        return _floats(eager, compiled, path, reference)
    wrong = eager != compiled
    if not bool(wrong.any()):
        return Report()
    report = Report()
    wrong = _settled(wrong, path, eager, reference, report)
    if bool(wrong.any()):
        index = _unravelled(int(wrong.flatten().to(torch.uint8).argmax()), eager.shape)
        report.differences.append(
            Difference(
                kind="value",
                path=path,
                message=_elements(int(wrong.sum()), wrong.numel()),
                shape=str(tuple(eager.shape)),
                dtype=str(eager.dtype),
                index=str(index),
                eager=str(eager[index].item()),
                compiled=str(compiled[index].item()),
                rule="integers and booleans must be equal",
            )
        )
    return report


def _settled(
    wrong: torch.Tensor, path: str, eager: torch.Tensor, reference: Reference, report: Report
) -> torch.Tensor:
    """`wrong` without the elements that eager itself does not give again."""
    moved = reference.moves(path, eager)
    if moved is False:
        return wrong
    if moved is True:
        moved = torch.ones_like(wrong)
    left = wrong & ~moved.view(wrong.shape)
    if not torch.equal(left, wrong):
        report.unsettled.append(path)
    return left


@dataclasses.dataclass
class _Suspects:
    """The elements of a float tensor that fail rule 1, or are not both finite."""

    places: torch.Tensor
    """Their flat indices."""
    eager: torch.Tensor
    compiled: torch.Tensor
    """Their values, float64."""


CHUNK = 1 << 18
"""Elements compared at once: the comparison of a large tensor must not need several times its
memory in float64."""


def _scan(eager: torch.Tensor, compiled: torch.Tensor) -> tuple[float, _Suspects]:
    """Largest finite difference in ULP, and the elements that rule 1 does not let pass."""
    limit, worst = ulp_limit(eager.dtype), 0.0
    places: list[torch.Tensor] = []
    left_flat, right_flat = eager.reshape(-1), compiled.reshape(-1)
    for start in range(0, left_flat.numel(), CHUNK):
        left, right = (t[start : start + CHUNK] for t in (left_flat, right_flat))
        left, right = left.to(torch.float64), right.to(torch.float64)
        in_ulp = (right - left).abs_().div_(ulp(left, eager.dtype))
        # Infinities of the same sign and NaN on both sides are equal.
        in_ulp.masked_fill_((left == right) | (left.isnan() & right.isnan()), 0.0)
        finite = in_ulp[in_ulp.isfinite()]
        worst = max(worst, float(finite.max()) if finite.numel() else 0.0)
        places.append(torch.nonzero(~(in_ulp <= limit)).flatten() + start)
        if sum(map(len, places)) > 2 * MAX_SUSPECTS:
            places = [torch.cat(places)[::2].clone()]
    found = torch.cat(places)
    found = found[:: 1 + len(found) // MAX_SUSPECTS]
    return worst, _Suspects(
        found, left_flat[found].to(torch.float64), right_flat[found].to(torch.float64)
    )


def _floats(eager: torch.Tensor, compiled: torch.Tensor, path: str, reference: Reference) -> Report:
    report = Report()
    # torch.equal first: it needs no temporaries, and most tensors are equal.
    if eager.numel() == 0 or _equal(eager, compiled):
        return report
    dtype = eager.dtype
    report.max_ulp, found = _scan(eager, compiled)
    if report.max_ulp > 0:
        report.rule = "ulp"
    if not found.places.numel():
        return report
    report.suspects[path] = found.places
    wrong = torch.ones_like(found.places, dtype=torch.bool)
    special = ~(found.eager.isfinite() & found.compiled.isfinite())
    distance = (found.compiled - found.eager).abs()
    unit = ulp(found.eager, dtype)

    precise = reference.float64(path, found.places)
    if precise is not None:
        allowed = REFERENCE_FACTOR * (found.eager - precise).abs() + reference_ulp(dtype) * unit
        # A reference that is not finite where eager is says nothing about that element.
        near = torch.isfinite(precise) & ((found.compiled - precise).abs() <= allowed)
        wrong &= special | ~near
        if not bool(wrong.any()):
            report.rule = "float64"
            return report
    noise = None
    for runs in (NOISE_RUNS, NOISE_RUNS + MORE_NOISE_RUNS):
        if not bool((wrong & ~special).any()):
            break
        noise = reference.noise(path, found.places, runs)
        if noise is None:
            break
        wrong &= special | ~(distance <= noise_factor(dtype) * noise)
        if not bool(wrong.any()):
            report.rule = "noise"
            return report
    moved = reference.moves(path, eager)
    if moved is not False:
        still = (
            wrong & ~moved.reshape(-1)[found.places]
            if moved is not True
            else torch.zeros_like(wrong)
        )
        if not torch.equal(still, wrong):
            report.unsettled.append(path)
        wrong = still
    if not bool(wrong.any()):
        return report
    is_nan = found.eager.isnan() != found.compiled.isnan()
    for kind, mask in (("nan", is_nan), ("inf", special & ~is_nan), ("value", ~special)):
        if bool((wrong & mask).any()):
            of_kind = _float_difference(
                kind, eager, found, wrong & mask, precise, noise, path, report.max_ulp
            )
            report.differences.append(of_kind)
    return report


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    try:
        return torch.equal(left, right)
    except RuntimeError:  # Not implemented for every float8 type.
        return False


def _float_difference(
    kind: str,
    eager: torch.Tensor,
    found: _Suspects,
    wrong: torch.Tensor,
    precise: torch.Tensor | None,
    noise: torch.Tensor | None,
    path: str,
    max_ulp: float,
) -> Difference:
    """The worst of the elements that no rule let pass, which are `wrong` in the same way, and how
    many there are."""
    dtype = eager.dtype
    if kind == "value":
        in_ulp = (found.compiled - found.eager).abs() / ulp(found.eager, dtype)
        worst = int(torch.where(wrong, in_ulp, -1.0).argmax())
    else:
        worst = int(wrong.to(torch.uint8).argmax())
    index = _unravelled(int(found.places[worst]), eager.shape)
    relative = (found.compiled - found.eager).abs() / found.eager.abs().clamp_min(
        torch.finfo(dtype).tiny
    )
    sizes = (
        {
            "max_absolute": float(torch.where(wrong, found.compiled - found.eager, 0).abs().max()),
            "max_relative": float(torch.where(wrong, relative, 0).max()),
            "max_ulp": max_ulp,
        }
        if kind == "value"
        else {}
    )
    return Difference(
        kind=kind,
        path=path,
        message=_elements(int(wrong.sum()), eager.numel()),
        shape=str(tuple(eager.shape)),
        dtype=str(dtype),
        index=str(index),
        eager=repr(float(found.eager[worst])),
        compiled=repr(float(found.compiled[worst])),
        float64="" if precise is None else repr(float(precise[worst])),
        rule=_rejection(
            dtype,
            None if precise is None else float(precise[worst]),
            None if noise is None else float(noise[worst]),
        )
        if kind == "value"
        else "NaN and infinities must stand in the same places",
        **sizes,
    )


def _rejection(dtype: torch.dtype, precise: float | None, noise: float | None) -> str:
    """Why no rule let an element pass."""
    parts = [f"more than {ulp_limit(dtype)} ULP from eager"]
    if precise is not None:
        parts.append(
            f"more than {REFERENCE_FACTOR} times eager's own distance plus "
            f"{reference_ulp(dtype)} ULP from a float64 run of eager"
        )
    if noise is not None:
        parts.append(f"more than {noise_factor(dtype)} times eager's noise of {noise:.3g}")
    if precise is None and noise is None:
        parts.append("and eager could not be run again")
    return ", ".join(parts)


def ulp_limit(dtype: torch.dtype) -> int:
    """Units in the last place that rule 1 lets pass."""
    if dtype in (torch.float32, torch.float64):
        return ULP_LIMIT
    return HALF_ULP_LIMIT if dtype in (torch.float16, torch.bfloat16) else FLOAT8_ULP_LIMIT


def reference_ulp(dtype: torch.dtype) -> int:
    """Units in the last place that rule 2 allows beyond its multiple of eager's distance."""
    return REFERENCE_ULP if dtype in (torch.float32, torch.float64) else HALF_REFERENCE_ULP


def noise_factor(dtype: torch.dtype) -> int:
    """How many times eager's own noise rule 3 lets pass."""
    return NOISE_FACTOR if dtype in (torch.float32, torch.float64) else HALF_NOISE_FACTOR


def ulp(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Distance from each value to the next larger number of `dtype`, in float64.

    Below the smallest normal number it is that of the smallest normal number, as it is for the
    numbers themselves: denormals are evenly spaced.
    """
    info = torch.finfo(dtype)
    magnitude = values.abs().clamp_min_(info.tiny)
    _, exponent = torch.frexp(magnitude)
    return torch.ldexp(torch.full_like(magnitude, info.eps), exponent - 1)


def _unravelled(flat: int, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), shape)) if shape else ()


def _elements(count: int, total: int) -> str:
    return f"{count} of {total} elements differ"
