"""Linear and cubic resampling with its positions written out, so that they can be moved.

Where a result lies between its neighbours is computed in the tensor's own precision: a position
near 1000 is off by a thousand times what its operands are. Moving operands and result does not show
that. The weights are written out here for the same reason as in `formulas`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from measured.formulas import Move

_A = -0.75
"""The free parameter of cubic convolution, as torch chooses it."""


def _linear(right: torch.Tensor) -> list[torch.Tensor]:
    """Weights of the two neighbours, of which the left one is `right` away."""
    return [1 - right, right]


def _cubic(right: torch.Tensor) -> list[torch.Tensor]:
    """Weights of the four neighbours, of which the second one is `right` away."""
    return [_far(right + 1), _near(right), _near(1 - right), _far(2 - right)]


def _near(distance: torch.Tensor) -> torch.Tensor:
    """Weight in cubic convolution of a neighbour at most 1 away."""
    return ((_A + 2) * distance - (_A + 3)) * distance * distance + 1


def _far(distance: torch.Tensor) -> torch.Tensor:
    """Weight in cubic convolution of a neighbour between 1 and 2 away."""
    return (((distance - 5) * distance + 8) * distance - 4) * _A


def _weights(
    move: Move, like: torch.Tensor, old: int, new: int, scale: float | None, *, align: bool,
    cubic: bool,
) -> torch.Tensor:  # fmt: skip
    """Weights of the `old` elements in each of the `new` ones: [new, old]."""
    at = torch.arange(new, dtype=like.dtype, device=like.device)
    if align:
        position = move(at * ((old - 1) / (new - 1) if new > 1 else 0.0))
    else:
        position = move(move(at + 0.5) * (1 / scale if scale else old / new)) - 0.5
        position = position if cubic else position.clamp(min=0.0)
    first = position.floor()
    right = move(position - first)
    taps = _cubic(right) if cubic else _linear(right)
    weights = torch.zeros(new, old, dtype=like.dtype, device=like.device)
    for offset, tap in enumerate(taps, start=-1 if cubic else 0):
        place = (first + offset).long().clamp(0, old - 1)
        weights.scatter_add_(1, place[:, None], move(tap)[:, None])
    return weights


def _resample(
    move: Move,
    x: torch.Tensor,
    output_size: list[int],
    align_corners: bool,
    *scales: float | None,
    cubic: bool,
    input_size: list[int] | None = None,
) -> torch.Tensor:
    """What the operation computes; with an `input_size`, what its backward computes."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    kept = input_size[2:] if input_size else x.shape[2:]
    result = wide
    for dim, (old, new) in enumerate(zip(kept, output_size, strict=True)):
        scale = scales[dim] if scales else None
        weights = _weights(move, wide, old, new, scale, align=align_corners, cubic=cubic)
        weights = weights.T if input_size else weights
        result = move(torch.tensordot(result, weights, ([dim + 2], [1])).movedim(-1, dim + 2))
    return result.to(x.dtype).contiguous(memory_format=suggest_memory_format(x))


def _forward(
    cubic: bool,
    move: Move,
    x: torch.Tensor,
    output_size: list[int],
    align_corners: bool,
    *scales: float | None,
) -> torch.Tensor:
    return _resample(move, x, output_size, align_corners, *scales, cubic=cubic)


def _backward(
    cubic: bool,
    move: Move,
    grad: torch.Tensor,
    output_size: list[int],
    input_size: list[int],
    align_corners: bool,
    *scales: float | None,
) -> torch.Tensor:
    return _resample(
        move, grad, output_size, align_corners, *scales, cubic=cubic, input_size=input_size
    )


FORMULAS: dict[str, Callable[..., Any]] = {
    name + suffix: functools.partial(formula, name == "upsample_bicubic2d")
    for name in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    )
    for suffix, formula in (("", _forward), ("_backward", _backward))
}  # fmt: skip
"""By the name of the operation; each takes what the operation takes, after a `Move`."""
