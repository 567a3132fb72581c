"""Which calls of a compiled callable are checked: first ones, rare ones, and those after a change.

A call is due when it is one of the first of its kind, or number 2**k of it; when state that it
reads has changed since the call before; and when the compiler is asked for it. What changes at
every call, such as a counter or a weight in training, is no news.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._dynamo import eval_frame

from measured import benchmarks, compare
from measured.constants import (
    AUDIT_SECONDS,
    CHECKING_SHARE,
    EARLY_CALLS,
    FIRST_CALLS,
    FIRST_COMPILES,
    MARKING_SHARE,
)
from measured.marks import Marks, changed, marks
from measured.reach import owner_of

_loads = 0
"""How often a module's or an optimizer's state was loaded, in this process."""


def notice_loads(owner: type) -> None:
    """Take a call after `load_state_dict` of a module or an optimizer for one after a change."""
    load = owner.load_state_dict

    @functools.wraps(load)
    def counted(*args: Any, **kwargs: Any) -> Any:
        global _loads
        _loads += 1
        return load(*args, **kwargs)

    owner.load_state_dict = counted


class Due:
    """Counts the calls of one compiled callable, and says which are to be checked."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original
        self._seen: Counter[Any] = Counter()
        self._marks: Marks | None = None
        self._changed: set[Any] = set()
        self._loads = _loads
        self._loop = 0
        self._calls_in_loop = 0
        self._start = time.perf_counter()
        self._marking_seconds = 0.0
        self._checking_seconds = 0.0

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether this call, not made yet, is due."""
        if loop := benchmarks.timed_loop():
            return self._is_first_in_benchmark(loop, args, kwargs)
        # Each of them counts, whether or not another is due already.
        due = [
            self._is_due(name) for name in (kind_of(self._original, args, kwargs), *self._news())
        ]
        return any(due)

    def _is_first_in_benchmark(
        self, loop: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether a call of a timed loop is the first of its kind.

        Beyond one check, a benchmark is to be let alone: soon, kinds are not asked for either.
        """
        if loop != self._loop:
            self._loop, self._calls_in_loop = loop, 0
        self._calls_in_loop += 1
        if self._calls_in_loop > EARLY_CALLS and self._calls_in_loop & (self._calls_in_loop - 1):
            return False
        kind = kind_of(self._original, args, kwargs)
        return not self._seen[kind] and self._is_due(kind)

    def compiles(self) -> bool:
        """Whether a call for which the compiler is asked is due."""
        return self._is_due(_COMPILED, FIRST_COMPILES)

    def took(self, seconds: float) -> None:
        """Time that a check took."""
        self._checking_seconds += seconds

    def _is_due(self, name: Any, first: int = FIRST_CALLS) -> bool:
        number = self._seen[name] + 1
        self._seen[name] = number
        if self._checking_seconds > AUDIT_SECONDS:
            return number == 1
        if number <= first:
            return True
        if number & (number - 1):
            return False
        # A long loop may wait, but not for long.
        elapsed = time.perf_counter() - self._start
        return number <= EARLY_CALLS or self._checking_seconds <= CHECKING_SHARE * elapsed

    def _news(self) -> Iterator[Any]:
        """Names of what has changed since the last call, and had not changed before that one."""
        if self._loads != _loads:
            self._loads = _loads
            yield "state loaded"
        start = time.perf_counter()
        if self._marking_seconds > MARKING_SHARE * (start - self._start):
            return
        try:
            now = marks(self._original)
        except Exception:  # Attributes of the program may raise.
            return
        before, self._marks = self._marks, now
        changes = set() if before is None else changed(before, now)
        news, self._changed = changes - self._changed, changes
        self._marking_seconds += time.perf_counter() - start
        yield from news


_COMPILED = object()


def kind_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What makes one call a different one from another for the compiler."""
    return (
        tuple([_kind(value) for value in args]),
        tuple([(name, _kind(value)) for name, value in kwargs.items()]),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_default_dtype(),
        getattr(owner_of(function), "training", None),
        eval_frame._stance.stance,
    )


def _kind(value: Any) -> Any:
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return kind, value.shape, value.dtype, value.device, value.requires_grad
    if kind in _PLAIN:
        return kind
    try:
        return tuple((path, _kind_of_leaf(leaf)) for path, leaf in compare.leaves(value, ""))
    except Exception:  # Properties and mappings of the program may raise.
        return kind


_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))


def _kind_of_leaf(leaf: Any) -> Any:
    return _kind(leaf) if isinstance(leaf, torch.Tensor) else type(leaf)
