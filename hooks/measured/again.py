"""Eager once more: with float64 beside it, or with jittered operands, when a tensor asks for it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch

from measured import compare, gradients, twin
from measured.reference import Float64Shadow, Jitter


class EagerAgain:
    """Further eager runs of one call, made when a tensor asks for them.

    Each starts from the state before the call and leaves the state after it. With `arrived`, it
    goes on into the backward pass that these gradients entered by.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        before: twin.Snapshot,
        after: twin.Snapshot,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        modes: twin.Modes,
        arrived: dict[str, torch.Tensor] | None = None,
    ) -> None:
        self._function = function
        self._before = before
        self._after = after
        self._args = args
        self._kwargs = kwargs
        self._modes = modes
        self._arrived = arrived or {}
        self._noise: dict[str, torch.Tensor] = {}
        self._noise_runs = 0
        self.failure = ""

    def float64(self, path: str) -> torch.Tensor | None:
        return self._float64.get(path)

    @functools.cached_property
    def _float64(self) -> dict[str, torch.Tensor]:
        mode = Float64Shadow()
        return self._again(mode, mode.shadow)

    def noise(self, path: str, runs: int) -> torch.Tensor | None:
        while self._noise_runs < runs and not self.failure:
            moved = self._again(Jitter(seed=self._noise_runs), _widened)
            for key, value in moved.items():
                if key in self._plain:
                    distance = (value - self._plain[key]).abs().nan_to_num(0.0, 0.0, 0.0)
                    self._noise[key] = torch.maximum(self._noise.get(key, distance), distance)
            self._noise_runs += 1
        return self._noise.get(path)

    @functools.cached_property
    def _plain(self) -> dict[str, torch.Tensor]:
        return self._again(contextlib.nullcontext(), _widened)

    def _again(
        self,
        mode: contextlib.AbstractContextManager[Any],
        read: Callable[[torch.Tensor], torch.Tensor],
    ) -> dict[str, torch.Tensor]:
        """Run eager under `mode`; what `read` sees of every tensor of the outcome, by path."""
        found: dict[str, torch.Tensor] = {}
        reached = self._before.reached
        self._before.restore()
        try:
            given = twin.stand_ins(reached, self._args, self._kwargs)
            with twin.eagerly(), self._modes.again(backward=bool(self._arrived)):
                with mode:
                    result = self._function(*given.args, **given.kwargs)
                for path, leaf in compare.leaves(result, "result"):
                    if isinstance(leaf, torch.Tensor):
                        found[path] = read(leaf.detach()).clone()
                for path, tensor in reached.tensors.values():
                    held = given.copies.get(path, tensor)
                    found[path] = read(held.detach()).clone()
                if self._arrived:
                    outputs = gradients.entries(result, reached)
                    edges = gradients.edges_of(dict(reached.tensors.values()) | given.leaves)
                    with mode:
                        sent = gradients.of_twin(outputs, edges, self._arrived)
                    found |= {f"gradient of {p}": read(g).clone() for p, g in sent.items()}
        except Exception as error:
            # No reference then: floats must pass without it, and the record says why.
            self.failure = f"eager could not be run again: {type(error).__name__}: {error}"
        finally:
            self._after.restore()
        return found


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor
