"""Eager once more: with float64 beside it, with jittered operands, or just again."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch

from measured import compare, gradients, modes, sight, twin
from measured.constants import MAX_SHADOWED_BYTES, NOISE_RUNS
from measured.reach import reach
from measured.reference import Float64Shadow, Jitter
from measured.snapshot import Snapshot
from measured.undefined import Undefined

_Read = Callable[[torch.Tensor], torch.Tensor]


class EagerAgain:
    """Further eager runs of one call, made when a comparison asks for them.

    Each starts from the state before the call and leaves the state after it. Only what stands at
    the `asked` paths is kept, and of a float tensor, in most cases, only the elements at these flat
    indices. `ending` is the exception that the first eager run ended with. With `arrived`, a run
    goes on into the backward pass that these gradients entered by.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        before: Snapshot,
        after: Snapshot,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        caller: modes.Caller,
        asked: dict[str, torch.Tensor | None],
        ending: BaseException | None = None,
        arrived: dict[str, torch.Tensor] | None = None,
    ) -> None:
        self._function = function
        self._before = before
        self._after = after
        self._args = args
        self._kwargs = kwargs
        self._caller = caller
        self._asked = asked
        self._ending = ending
        self._arrived = arrived or {}
        self._squares: dict[str, torch.Tensor] = {}
        self._noise_runs = 0
        self.failure = ""
        """Why eager could not be run again, where it could not."""

    def float64(self, path: str, places: torch.Tensor) -> torch.Tensor | None:
        return self._float64.get(path) if self._keeps(path, places) else None

    @functools.cached_property
    def _float64(self) -> dict[str, torch.Tensor]:
        if self._before.nbytes > MAX_SHADOWED_BYTES:
            return {}  # Shadows of all that such a call computes would not fit: rule 3 remains.
        mode = Float64Shadow()
        return self._elements(mode, mode.shadow)

    def noise(self, path: str, places: torch.Tensor, runs: int) -> torch.Tensor | None:
        if not self._keeps(path, places):
            return None
        while self._noise_runs < runs and not self.failure:
            for key, value in self._elements(Jitter(seed=self._noise_runs), _same).items():
                base = self._base.get(key)
                if base is not None and base.shape == value.shape:
                    square = value.sub_(base).nan_to_num_(0.0, 0.0, 0.0).square_()
                    known = self._squares.get(key)
                    self._squares[key] = square if known is None else known.add_(square)
            self._noise_runs += 1
        if path not in self._squares or self._noise_runs < NOISE_RUNS:
            return None
        return (self._squares[path] / self._noise_runs).sqrt_()

    @functools.cached_property
    def _base(self) -> dict[str, torch.Tensor]:
        return self._elements(contextlib.nullcontext(), _same)

    def _keeps(self, path: str, places: torch.Tensor) -> bool:
        kept = self._asked.get(path)
        return kept is not None and torch.equal(kept, places)

    def moves(self, path: str, value: Any) -> torch.Tensor | bool:
        where: torch.Tensor | bool = False
        value = compare.as_tensor(value)  # As each repeat was kept.
        for again in self._repeats:
            now = again.get(path, compare.ABSENT)
            if not isinstance(value, torch.Tensor) or not isinstance(now, torch.Tensor):
                if type(now) is not type(value) or _key(now) != _key(value):
                    return True
            elif now.shape != value.shape or now.dtype != value.dtype:
                return True
            else:
                moved = _differ(value.detach(), now)
                where = moved if where is False else where | moved
        return where if isinstance(where, torch.Tensor) and bool(where.any()) else False

    def ends_again(self) -> bool:
        """Whether every further run ends as the first did: with that kind of exception, or none."""
        return all(type(again[_ERROR]) is type(self._ending) for again in self._repeats)

    @functools.cached_property
    def _repeats(self) -> list[dict[str, Any]]:
        def keep(_path: str, value: Any) -> Any:
            return value.detach().clone() if isinstance(value, torch.Tensor) else value

        ways = contextlib.nullcontext(), Undefined(side=0), Undefined(side=1)
        return [self._again(mode, keep) for mode in ways]

    def _elements(
        self, mode: contextlib.AbstractContextManager[Any], read: _Read
    ) -> dict[str, torch.Tensor]:
        """The elements asked for, in float64, of what `read` makes of each tensor."""

        def keep(path: str, value: Any) -> torch.Tensor | None:
            places = self._asked[path]
            if places is None or not isinstance(value, torch.Tensor):
                return None
            flat = _flat(read(value.detach()))
            # A run may take another path, and give another shape.
            return flat[places].to(torch.float64) if len(flat) > int(places.max()) else None

        found = self._again(mode, keep)
        error = found.pop(_ERROR)
        if type(error) is not type(self._ending) and not self.failure:
            # No reference then: floats must pass without it, and the record says why.
            self.failure = f"eager could not be run again: {type(error).__name__}: {error}"
        return {path: value for path, value in found.items() if value is not None}

    def _again(
        self, mode: contextlib.AbstractContextManager[Any], keep: Callable[[str, Any], Any]
    ) -> dict[str, Any]:
        """Run eager under `mode`: what stands at the asked paths, and the exception or None."""
        found: dict[str, Any] = {_ERROR: None}
        before = self._before.reached
        self._before.restore()
        try:
            given = twin.stand_ins(before, self._args, self._kwargs)
            backward = bool(self._arrived)
            with twin.eagerly(), self._caller.again(backward=backward):
                inputs = gradients.edges_of(dict(before.tensors.values()) | given.leaves)
                with mode:
                    outcome = sight.run(self._function, given.args, given.kwargs)
                found[_ERROR] = outcome.error
                reached = reach(self._function, given.args, given.kwargs, given.originals)
                live = sight.live(outcome, reached, before)
                found |= self._kept(live, keep)
                if backward:
                    histories = before.histories | given.histories
                    entries = gradients.entries(outcome.result, reached, histories)
                    with mode:
                        flow = gradients.of_twin(entries, inputs, self._arrived)
                        sent = gradients.named(flow)
                    found |= self._kept(sent, keep)
        except Exception as error:
            found[_ERROR] = error
        finally:
            self._after.restore()
        return found

    def _kept(self, places: dict[str, Any], keep: Callable[[str, Any], Any]) -> dict[str, Any]:
        return {
            path: keep(path, compare.as_tensor(value))
            for path, value in places.items()
            if path in self._asked
        }


_ERROR = "exception"


def _key(value: Any) -> Any:
    """An array that torch has no dtype for compares element by element; its list as a whole."""
    return value.tolist() if hasattr(value, "tolist") else value


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _differ(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if left.layout is not torch.strided:
        left, right = left.to_dense(), right.to_dense()
    moved = left != right
    if left.is_floating_point() or left.is_complex():
        moved &= ~(left.isnan() & right.isnan())
    return moved


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)
