"""Marks of the state that a callable reads: where they are equal before two calls, nothing that is
seen here has changed between them.

A walk of a few microseconds per module, for calls that are not checked otherwise; `reach` is the
thorough one. It goes to the modules, optimizers, objects and containers that the callable holds or
names, sees plain values, hooks, which object stands where, and how often tensors were written, and
holds on to nothing.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from measured.reach import is_instance_of_program, owner_of

Marks = dict[Any, Any]
"""Name of each thing that a callable reads -> what tells its present state from another."""


def marks(function: Callable[..., Any]) -> Marks:
    """Marks of what `function` reads now."""
    found: Marks = {}
    seen: set[torch.nn.Module] = set()
    for name, thing in _held(function):
        found[name] = _mark(thing)
        if isinstance(thing, torch.nn.Module):
            for inner, module in thing.named_modules(memo=seen, prefix=name):
                _mark_items(found, inner, module.__dict__.items())
        elif isinstance(thing, torch.optim.Optimizer):
            for index, group in enumerate(thing.param_groups):
                _mark_items(found, f"{name}[{index}]", group.items())
        elif isinstance(thing, dict):
            _mark_items(found, name, thing.items())
        elif isinstance(thing, list):
            _mark_items(found, name, enumerate(thing))
        elif is_instance_of_program(thing) and hasattr(thing, "__dict__"):
            _mark_items(found, name, thing.__dict__.items())
    return found


def changed(before: Marks, now: Marks) -> set[Any]:
    """Names of what has changed, come or gone."""
    if before == now:
        return set()
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def _held(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """What the callable is bound to, holds in cells, and names in its own code."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = owner_of(function)
    if owner is not None:
        yield "self", owner
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # Empty.
            continue
    namespace = function.__globals__
    for name in function.__code__.co_names:
        if name in namespace and not isinstance(namespace[name], types.ModuleType):
            yield f"global {name}", namespace[name]


def _mark_items(found: Marks, name: str, items: Iterable[tuple[Any, Any]]) -> None:
    writes = 0
    for key, value in items:
        if isinstance(value, dict):
            # Parameters, buffers, hooks: mostly empty, and of few kinds.
            if value:
                found[name, key] = tuple([(k, _mark(v)) for k, v in value.items()])
                writes += sum(_writes(v) for v in value.values() if isinstance(v, torch.Tensor))
        else:
            found[name, key] = _mark(value)
            if isinstance(value, torch.Tensor):
                writes += _writes(value)
    found[name, "tensors written"] = writes


def _mark(thing: Any) -> Any:
    if isinstance(thing, _PLAIN):
        return thing
    if isinstance(thing, torch.Tensor):
        hooks = thing._backward_hooks
        return id(thing), tuple(hooks) if hooks else None
    return id(thing), type(thing)


_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _writes(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
