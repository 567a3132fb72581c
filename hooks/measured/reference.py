"""Two ways to run eager code again: with float64 in its shadow, and with jittered operands.

Both are dispatch modes, which see every operation below autograd, backward included.

`Float64Shadow` runs the code in its own precision. Beside each float storage it keeps one of
float64 with the same layout, repeats the operation on those, and lets the program see only the
ordinary results: branches, indices and shapes are eager's own, and no module is converted. Where an
operation can not be repeated in float64, its ordinary result is taken as exact, which makes the
reference stricter, never more lenient.

`Jitter` is Monte Carlo arithmetic: it moves what an operation may round, so that rounding shows as
spread. An element-wise operation rounds its result: its operands are what they are, also where its
function jumps. A sum, a product of matrices, a norm rounds inside too: there the operands move as
well. A copy, a maximum, a comparison rounds nothing.
"""

from __future__ import annotations

import functools
import random
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_map, tree_map_only

from measured import formulas, resampling
from measured.constants import WIDE_UNITS
from measured.dispatch import PlainMode

_FORGET_AFTER_BYTES = 1 << 26

_POOL = 1 << 20
"""Elements of a tensor that are moved at once; a larger one is moved in parts."""

_FORMULAS = formulas.FORMULAS | resampling.FORMULAS

_LOW = (torch.float32, torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64)


class Float64Shadow(PlainMode):
    """While active, `shadow(tensor)` gives the float64 version of what the program computed."""

    def __init__(self) -> None:
        super().__init__()
        self._shadows: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._bytes_made = 0

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Shadows of inputs are taken before the operation: it may write to them.
        shadow_args, shadow_kwargs = tree_map(self._lift, (args, kwargs))
        result = func(*args, **kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags or _writes_exactly(func, args, kwargs):
            self._adopt(result, result)
            return result
        try:
            self._adopt(result, func(*shadow_args, **shadow_kwargs))
        except Exception:  # No float64 kernel, or a dtype that the operation insists on.
            self._adopt(result, result)
        return result

    def shadow(self, tensor: torch.Tensor) -> torch.Tensor:
        """The float64 value of `tensor`; the tensor itself, widened, if no operation wrote it."""
        if not _has_shadow(tensor):
            return tensor
        storage = tensor.untyped_storage()
        entry = self._shadows.get(storage._cdata)
        if (
            entry is None
            or entry[0].expired()
            or entry[1].numel() * tensor.element_size() < (storage.nbytes())
        ):
            flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
            entry = (StorageWeakRef(storage), flat.to(torch.float64))
            self._forget_expired(entry[1].nbytes)
            self._shadows[storage._cdata] = entry
        return entry[1].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _forget_expired(self, more: int) -> None:
        """Let go of the shadows of what the program has let go of, before they add up."""
        self._bytes_made += more
        if self._bytes_made > _FORGET_AFTER_BYTES:
            self._bytes_made = 0
            self._shadows = {k: e for k, e in self._shadows.items() if not e[0].expired()}

    def _lift(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.shadow(value)
        return torch.float64 if isinstance(value, torch.dtype) and value in _LOW else value

    def _adopt(self, result: Any, precise: Any) -> None:
        """Remember `precise` as the shadow of `result`, tensor by tensor."""
        results: list[torch.Tensor] = []
        shadows: list[torch.Tensor] = []
        tree_map_only(torch.Tensor, results.append, result)
        tree_map_only(torch.Tensor, shadows.append, precise)
        for ordinary, exact in zip(results, shadows, strict=True):
            if not _has_shadow(ordinary):
                continue
            mine = self.shadow(ordinary)
            # A view or an in-place result is its own shadow already.
            if mine.data_ptr() != exact.data_ptr():
                mine.copy_(exact)


def _has_shadow(tensor: torch.Tensor) -> bool:
    # A subclass that wraps other tensors has a storage, with no memory behind it.
    return (
        tensor.dtype in _LOW
        and tensor.layout is torch.strided
        and not is_traceable_wrapper_subclass(tensor)
    )


def _writes_exactly(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it writes to a tensor that has no shadow: repeating it would count twice."""
    tensors: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, tensors.append, _written(func, args, kwargs))
    return any(tensor.dtype not in _LOW for tensor in tensors)


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that the operation writes to."""
    unsaid = _WRITES_UNSAID.get(func.overloadpacket.__name__, ())
    return [
        kwargs.get(argument.name, args[index] if index < len(args) else None)
        for index, argument in enumerate(func._schema.arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write) or index in unsaid
    ]


_WRITES_UNSAID = {"native_batch_norm": (3, 4), "cudnn_batch_norm": (3, 4)}
"""Arguments that an operation writes to although its schema does not say so: running statistics."""


class Jitter(PlainMode):
    """While active, floats move where an operation rounds.

    A third of them is multiplied by 1 + eps or 1 - eps, which moves by one unit in the last place
    or two, half a unit on average; zeros, infinities and NaN stay what they are. Complex numbers
    move by their modulus. In float32 and float64, what adds many terms moves `WIDE_UNITS` times as
    far: its own rounding grows with the number of terms, in another way for each order of them.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        # Its own streams: the program's must not be drawn from.
        self._random = random.Random(seed)
        self._units = 1

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        written: list[torch.Tensor] = []
        tree_map_only(torch.Tensor, written.append, _written(func, args, kwargs))
        if _rounds_nothing(func, args, kwargs) or (not written and _is_view(func)):
            return func(*args, **kwargs)
        name, one_by_one = _name(func), _is_elementwise(func)
        self._units = 1 if one_by_one or name in resampling.FORMULAS else WIDE_UNITS
        formula = None if written else _FORMULAS.get(name)
        if formula is not None:
            return formula(self._move_in_place, *args, **kwargs)
        if not one_by_one or _rounds_inside(func, args, kwargs):
            # What is written to must be the thing itself; anything else can be a moved copy.
            kept = {id(tensor) for tensor in written}
            for tensor in written:
                self._move_in_place(tensor)

            def move(value: Any) -> Any:
                return value if id(value) in kept else self._moved(value)

            args, kwargs = tree_map(move, args), tree_map(move, kwargs)
        result = func(*args, **kwargs)
        targets: list[torch.Tensor] = []
        tree_map_only(torch.Tensor, targets.append, [result, *written])
        for tensor in {id(tensor): tensor for tensor in targets}.values():
            self._move_in_place(tensor)
        return result

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not _is_dense_float(value):
            return value
        return self._move_in_place(value.clone())

    def _move_in_place(self, tensor: torch.Tensor) -> torch.Tensor:
        if not _is_dense_float(tensor) or not tensor.numel():
            return tensor
        if tensor.numel() <= _POOL:
            tensor.mul_(self._some(tensor))
        elif tensor.is_contiguous():
            for part in tensor.view(-1).split(_POOL):
                part.mul_(self._some(part))
        else:
            for part in tensor.unbind(max(range(tensor.ndim), key=lambda dim: tensor.shape[dim])):
                self._move_in_place(part)
        return tensor

    def _some(self, tensor: torch.Tensor) -> torch.Tensor:
        """Random factors in the tensor's shape: a stretch of a pool, which is much cheaper to draw
        than new ones for every operation."""
        if tensor.is_complex():
            real = tensor.dtype.to_real()
            return torch.complex(self._stretch(tensor, real), self._stretch(tensor, real) - 1)
        return self._stretch(tensor, tensor.dtype)

    def _stretch(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        pool = _pool(dtype, tensor.device, self._units if dtype in _WIDE else 1)
        start = self._random.randrange(pool.numel() - tensor.numel() + 1)
        return pool[start : start + tensor.numel()].view(tensor.shape)


@functools.cache
def _pool(dtype: torch.dtype, device: torch.device, units: int) -> torch.Tensor:
    """Random factors, drawn once: each run of each operation starts elsewhere in them."""
    # Kept for later calls, which are made under other modes.
    with _disable_current_modes(), torch.inference_mode(False), torch.device("cpu"):
        generator = torch.Generator().manual_seed(units)
        step = torch.randint(0, 6, (2 * _POOL,), dtype=torch.int8, generator=generator)
        pool = torch.empty(len(step), dtype=dtype)
        # In parts: in float64, all of them would need much memory for a moment.
        for part, steps in zip(pool.split(1 << 16), step.split(1 << 16), strict=True):
            moves = (steps == 5).to(torch.float64) - (steps == 0).to(torch.float64)
            part.copy_(1 + moves * (units * torch.finfo(dtype).eps))
        return pool.to(device)


_ELEMENTWISE = {"floor_divide", "native_dropout", "_to_copy"}
"""Element-wise operations that torch does not tag as pointwise."""

_ROUNDS_INSIDE = {
    "addcdiv", "addcmul", "celu", "elu", "elu_backward", "gelu", "gelu_backward", "glu",
    "glu_backward", "hardsigmoid", "hardswish", "hardswish_backward", "huber_loss_backward",
    "lerp", "log_sigmoid_backward", "log_sigmoid_forward", "logit", "logit_backward", "mish",
    "mish_backward", "mse_loss_backward", "selu", "sigmoid_backward", "silu", "silu_backward",
    "sinc", "smooth_l1_loss_backward", "softplus", "softplus_backward", "tanh_backward", "xlogy",
}  # fmt: skip
"""Element-wise operations of several smooth steps, the terms of which may cancel."""

_EXACT = {
    # Which value, not what value:
    "alias", "amax", "amin", "cat", "clamp", "clamp_max", "clamp_min", "clone", "constant_pad_nd",
    "copy", "cummax", "cummin", "diag_embed", "embedding", "fill", "flip", "fmax", "fmin", "gather",
    "index", "index_copy", "index_fill", "index_select", "kthvalue", "masked_fill",
    "masked_scatter", "masked_select", "max", "max_pool2d_with_indices",
    "max_pool3d_with_indices", "maximum", "median", "min", "minimum", "mode", "narrow_copy",
    "relu", "repeat", "repeat_interleave", "roll", "scatter", "select_scatter", "slice_scatter",
    "sort", "split_with_sizes_copy", "stack", "topk", "tril", "triu", "where", "zero",
    # Representable by nature:
    "abs", "ceil", "floor", "fmod", "frac", "frexp", "isfinite", "isinf", "isnan", "neg", "round",
    "sgn", "sign", "trunc",
    # Made from nothing:
    "arange", "empty", "empty_like", "empty_strided", "full", "full_like", "new_empty",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zeros",
    "zeros_like",
}  # fmt: skip
"""Operations that round nothing, by the name of the out-of-place form."""


def _name(func: Any) -> str:
    return func.overloadpacket.__name__.removesuffix("_")


def _is_view(func: Any) -> bool:
    return any(argument.alias_info is not None for argument in func._schema.arguments)


def _rounds_inside(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an element-wise operation has several steps."""
    name = _name(func).removeprefix("_foreach_")
    if name in ("add", "sub", "rsub"):
        return kwargs.get("alpha", args[2] if len(args) > 2 else 1) not in (1, -1)
    return name in _ROUNDS_INSIDE


def _rounds_nothing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if _name(func) == "_to_copy":
        to = kwargs.get("dtype")
        return to is None or _narrower(args[0].dtype, to) is args[0].dtype
    return _name(func) in _EXACT


def _narrower(left: torch.dtype, right: torch.dtype) -> torch.dtype:
    return left if torch.promote_types(left, right) is right else right


def _is_elementwise(func: Any) -> bool:
    name = _name(func)
    return torch.Tag.pointwise in func.tags or name in _ELEMENTWISE or name.startswith("_foreach_")


def _is_dense_float(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and (
        tensor.is_complex() or tensor.dtype in (*_LOW, torch.float64)
    )
