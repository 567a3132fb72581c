"""What torch leaves undefined, done differently: so that an undefined result shows as one.

Eager run twice often gives the same where nothing promises that it does: memory that was never
written still holds the same, and of two writes to one element the same one wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from measured.dispatch import PlainMode

aten = torch.ops.aten


class Undefined(PlainMode):
    """While active, new memory holds noise, and the first of several writes to an element wins."""

    def __init__(self, side: int) -> None:
        """`side` is 0 or 1: the noise of one side has no value in common with that of the other, so
        that any content of an element differs from one of the two."""
        super().__init__()
        self._side = side
        self._generator = torch.Generator().manual_seed(side)

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packet = func.overloadpacket
        if packet in _UNWRITTEN:
            result = func(*args, **kwargs)
            tree_map_only(torch.Tensor, self._fill, result)
            return result
        reverse = _DUPLICATES.get(packet)
        if reverse is not None:
            args = reverse(*args, **kwargs)
        return func(*args, **kwargs)

    def _fill(self, tensor: torch.Tensor) -> None:
        if tensor.device.type == "meta" or tensor.layout is not torch.strided:
            return
        if tensor.dtype == torch.bool:
            tensor.fill_(bool(self._side))
            return
        least = 1 + 50 * self._side
        noise = torch.randint(least, least + 50, tensor.shape, generator=self._generator)
        tensor.copy_(noise.to(tensor.dtype))


_UNWRITTEN = {
    aten.empty, aten.empty_like, aten.empty_strided, aten.new_empty, aten.new_empty_strided,
}  # fmt: skip


def _reverse_index_put(
    target: torch.Tensor,
    indices: list[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
    *_: Any,
    **__: Any,
) -> tuple[Any, ...]:
    """`target[indices] = values` with its writes in the opposite order."""
    rest = (accumulate, *_)
    given = [index for index in indices if index is not None]
    if accumulate or not given or any(index.dtype == torch.bool for index in given):
        return target, indices, values, *rest
    together = torch.broadcast_tensors(*given)
    at = _where_indices_land(indices)
    dims = [at + i for i in range(together[0].ndim)]
    shape = _indexed_shape(target, indices, together[0].shape, at)
    flipped = iter(index.flip(tuple(range(index.ndim))) for index in together)
    turned = [None if index is None else next(flipped) for index in indices]
    return target, turned, values.expand(shape).flip(dims), *rest


def _where_indices_land(indices: list[torch.Tensor | None]) -> int:
    """First dimension of the indexed part of the result: 0 if the indices are not adjacent."""
    places = [place for place, index in enumerate(indices) if index is not None]
    adjacent = places == list(range(places[0], places[-1] + 1))
    return places[0] if adjacent else 0


def _indexed_shape(
    target: torch.Tensor, indices: list[torch.Tensor | None], shape: torch.Size, at: int
) -> list[int]:
    kept = [
        size
        for place, size in enumerate(target.shape)
        if place >= len(indices) or indices[place] is None
    ]
    return [*kept[:at], *shape, *kept[at:]]


def _reverse_scatter(
    target: torch.Tensor, dim: int, index: torch.Tensor, source: Any, *rest: Any, **_: Any
) -> tuple[Any, ...]:
    if not isinstance(source, torch.Tensor) or index.ndim == 0 or "reduce" in _ or rest:
        return target, dim, index, source, *rest
    window = source[tuple(slice(size) for size in index.shape)]
    return target, dim, index.flip(dim), window.flip(dim)


def _reverse_index_copy(
    target: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor
) -> tuple[Any, ...]:
    if index.ndim == 0 or source.ndim == 0:
        return target, dim, index, source
    return target, dim, index.flip(0), source.flip(dim)


def _reverse_put(
    target: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False
) -> tuple[Any, ...]:
    if accumulate:
        return target, index, source, accumulate
    return target, index.flatten().flip(0), source.flatten().flip(0), accumulate


_DUPLICATES: dict[Any, Callable[..., tuple[Any, ...]]] = {
    aten.index_put: _reverse_index_put,
    aten.index_put_: _reverse_index_put,
    aten._index_put_impl_: _reverse_index_put,
    aten.scatter: _reverse_scatter,
    aten.scatter_: _reverse_scatter,
    aten.index_copy: _reverse_index_copy,
    aten.index_copy_: _reverse_index_copy,
    aten.put: _reverse_put,
    aten.put_: _reverse_put,
}
