"""Functions that round inside, step by step, so that each step can be moved.

torch computes them in one operation, in which terms cancel: near a root of the function, or of its
derivative, and where a softmax is nearly sure, what is left is rounding. The formulas are written
out here and not taken from torch's decompositions, which the compiler uses too: a wrong one would
excuse itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Move = Callable[[torch.Tensor], torch.Tensor]
"""Moves the elements of a tensor by a rounding error, in place, and gives the tensor: what it moves
must be an intermediate result, never an operand."""

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBE = 0.044715


def _wide(x: torch.Tensor, move: Move) -> torch.Tensor:
    """A copy: types of 16 bits are computed in float32, from operands that are what they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else move(x.clone())


def _gelu(move: Move, x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    w = _wide(x, move)
    if approximate == "none":
        inner = 1 + move(torch.erf(w * math.sqrt(0.5)))
    else:
        inner = 1 + move(torch.tanh(move(_TANH_SCALE * move(w + _TANH_CUBE * w**3))))
    return move((move(0.5 * w) * move(inner)).to(x.dtype))


def _gelu_backward(
    move: Move, grad: torch.Tensor, x: torch.Tensor, *, approximate: str = "none"
) -> torch.Tensor:
    w, g = _wide(x, move), _wide(grad, move)
    if approximate == "none":
        below = move(0.5 * move(1 + move(torch.erf(w * math.sqrt(0.5)))))
        density = move(torch.exp(-0.5 * w * w) / math.sqrt(2 * math.pi))
        return move((g * move(below + move(w * density))).to(x.dtype))
    t = move(torch.tanh(move(_TANH_SCALE * move(w + _TANH_CUBE * w**3))))
    left = move(0.5 * move(1 + t))
    right = move(0.5 * w * move(1 - move(t * t)) * (_TANH_SCALE * (1 + 3 * _TANH_CUBE * w * w)))
    return move((g * move(left + right)).to(x.dtype))


def _mish_backward(move: Move, grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    w, g = _wide(x, move), _wide(grad, move)
    t = move(torch.tanh(move(torch.nn.functional.softplus(w))))
    right = move(w * move(torch.sigmoid(w)) * move(1 - move(t * t)))
    return move((g * move(t + right)).to(x.dtype))


def _softmax(move: Move, x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    terms = move(_below_largest(move, x, dim).exp_())
    result = move(terms.div_(move(terms.sum(dim, keepdim=True))))
    return result if half_to_float else move(result.to(x.dtype))


def _log_softmax(move: Move, x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    below = _below_largest(move, x, dim)
    total = move(move(torch.exp(below)).sum(dim, keepdim=True))
    result = move(below.sub_(move(total.log_())))
    return result if half_to_float else move(result.to(x.dtype))


def _below_largest(move: Move, x: torch.Tensor, dim: int) -> torch.Tensor:
    w = _wide(x, move)
    return move(w.sub_(w.amax(dim, keepdim=True))) if w.numel() else w


def _softmax_backward(
    move: Move, grad: torch.Tensor, y: torch.Tensor, dim: int, input_dtype: torch.dtype
) -> torch.Tensor:
    w, g = _wide(y, move), _wide(grad, move)
    terms = move(g.mul_(w))
    result = move(terms.sub_(move(w.mul_(move(terms.sum(dim, keepdim=True))))))
    return move(result.to(input_dtype))


def _log_softmax_backward(
    move: Move, grad: torch.Tensor, y: torch.Tensor, dim: int, input_dtype: torch.dtype
) -> torch.Tensor:
    w, g = _wide(y, move), _wide(grad, move)
    result = move(g.sub_(move(move(w.exp_()).mul_(move(g.sum(dim, keepdim=True))))))
    return move(result.to(input_dtype))


FORMULAS: dict[str, Callable[..., Any]] = {
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "mish_backward": _mish_backward,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _log_softmax_backward,
}
"""By the name of the operation; each takes what the operation takes, after a `Move`."""
