"""Runs eager code in its own precision and, in the shadow of it, in float64.

A dispatch mode sees every operation below autograd, backward included. Beside each float storage
it keeps one of float64 with the same layout, repeats the operation on those, and lets the
program see only the ordinary results: branches, indices and shapes are eager's own, and no
module is converted. Where an operation can not be repeated in float64, its ordinary result is
taken as exact, which makes the reference stricter, never more lenient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

_LOW = (torch.float32, torch.float16, torch.bfloat16)


class Float64Shadow(TorchDispatchMode):
    """While active, `shadow(tensor)` gives the float64 version of what the program computed."""

    def __init__(self) -> None:
        super().__init__()
        self._shadows: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
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
        if tensor.dtype not in _LOW or tensor.layout is not torch.strided:
            return tensor
        storage = tensor.untyped_storage()
        entry = self._shadows.get(storage._cdata)
        if entry is None or entry[0].expired() or entry[1].numel() * tensor.element_size() < (
            storage.nbytes()
        ):
            flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
            entry = (StorageWeakRef(storage), flat.to(torch.float64))
            self._shadows[storage._cdata] = entry
        return entry[1].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

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
            if ordinary.dtype not in _LOW or ordinary.layout is not torch.strided:
                continue
            mine = self.shadow(ordinary)
            # A view or an in-place result is its own shadow already.
            if mine.data_ptr() != exact.data_ptr():
                mine.copy_(exact)


def _writes_exactly(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the operation writes to a tensor that has no shadow: repeating it would count twice."""
    written = [
        kwargs.get(argument.name, args[index] if index < len(args) else None)
        for index, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    tensors: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, tensors.append, written)
    return any(tensor.dtype not in _LOW for tensor in tensors)
