"""What a call can reach: every tensor and everything that holds state, each by a path.

The walk goes from the arguments and the callable by attribute, item, closure and the globals that
code names. It stops at modules of libraries, so that it stays within the program.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from measured import holders

MAX_OBJECTS = 200_000
"""A call that reaches more objects than this is not shadowed, and the audit says so."""

_STANDARD_LIBRARY = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
"""Packages may be installed in more places than this interpreter's own: overlays, user folders."""
_OURS = os.path.dirname(__file__) + os.sep
_OUR_NAME = f"{__name__.partition('.')[0]}."

_WALKED_LIBRARIES = ("torch.optim", "torch.amp", "torch.nn")


class NotComparable(Exception):
    """The call can not be run twice."""


@dataclasses.dataclass
class Reach:
    """(path, thing) in the order of discovery, each thing once."""

    tensors: dict[int, tuple[str, torch.Tensor]] = dataclasses.field(default_factory=dict)
    holders: dict[int, tuple[str, Any, holders.Holder]] = dataclasses.field(default_factory=dict)
    histories: dict[int, Any] = dataclasses.field(default_factory=dict)
    """The `grad_fn` of each tensor when it was met."""
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """Path of every object that the walk met, tensor, holder or other."""


def reach(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    originals: dict[int, torch.Tensor] | None = None,
) -> Reach:
    """Everything that the call can reach by attribute, item, closure or global.

    `originals` maps the identity of a stand-in to the tensor that it stands for, which is then not
    met a second time. Raises `NotComparable` where something can be gone through only once, or
    where there is too much.
    """
    found = Reach()
    originals = originals or {}
    counts: collections.Counter[str] = collections.Counter()
    pending: list[tuple[str, Any]] = [("", function), ("kwargs", kwargs), ("args", args)]
    while pending:
        path, thing = pending.pop()
        identity = _identity(originals.get(id(thing), thing))
        if identity in found.names:
            continue
        if len(found.names) > MAX_OBJECTS:
            raise NotComparable(f"reaches more than {MAX_OBJECTS} objects")
        # Two things may be reached by the same words; each needs a name of its own. What only
        # leads to the thing that it names does not.
        if not isinstance(thing, _LEADS):
            counts[path] += 1
            if counts[path] > 1:
                path = f"{path}#{counts[path]}"
        found.names[identity] = path
        # Reversed, so that what is yielded first is visited, and named, first.
        pending.extend(reversed(list(_visit(found, path, thing, identity))))
    return found


_LEADS = (
    types.CellType, types.MethodType, types.FunctionType, types.ModuleType, type, staticmethod,
    classmethod, property, functools.partial, holders.Attributes, holders.Slots, holders.ClassBody,
    holders.Binding, bool, int, float, str, bytes, type(None),
)  # fmt: skip


def _identity(thing: Any) -> Any:
    """Two wrappers of the same place are the same thing."""
    if isinstance(thing, holders.Binding):
        return id(thing.namespace), thing.name
    if isinstance(thing, holders.Attributes):
        return id(vars(thing.owner))
    if isinstance(thing, (holders.Slots, holders.ClassBody)):
        return type(thing), id(thing.owner)
    return id(thing)


def _visit(found: Reach, path: str, thing: Any, identity: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, _PLAIN):
        return
    if isinstance(thing, torch.Tensor):
        if torch.nn.parameter.is_lazy(thing):
            raise NotComparable(f"{path} has no shape until a call gives it one, for good")
        found.tensors[id(thing)] = (path, thing)
        found.histories[id(thing)] = thing.grad_fn
        if thing.is_leaf and thing.grad is not None:
            yield f"{path}.grad", thing.grad
        yield path, holders.Attributes(thing)
        return
    if isinstance(thing, types.FunctionType):
        if thing.__code__.co_filename.startswith(_OURS):
            # The audit's own state is not the program's: go on with what the shadow stands for.
            yield path, getattr(thing, "_torchdynamo_orig_callable", None)
        else:
            yield from _visit_function(path, thing)
        return
    if isinstance(thing, types.MethodType):
        yield "self", thing.__self__
        yield path, thing.__func__
        return
    holder = holders.holder_of(thing)
    if holder is not None:
        found.holders[identity] = (path, thing, holder)
        if holder.has_inside:
            # Plain parts hold nothing, and some, such as a length, are made for the occasion.
            yield from (
                (path + suffix, part)
                for suffix, part in holder.parts(holder.save(thing))
                if not isinstance(part, _PLAIN)
            )
    elif isinstance(thing, functools.partial):
        yield path, thing.func
        yield path, thing.args
        yield path, thing.keywords
    elif isinstance(thing, collections.abc.Iterator) and not (_is_walked(thing) or _is_file(thing)):
        raise NotComparable(f"{path or 'the callable'} can be gone through only once")
    elif isinstance(thing, (tuple, frozenset)):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(thing))
    if isinstance(thing, type):
        if not _is_library_type(thing):
            yield path, holders.ClassBody(thing)
            yield from _visit_code_of(path, thing)
    elif _is_walked(thing):
        if isinstance(thing, torch.optim.Optimizer):
            # Its state has the parameters as keys, which can not be written in a path.
            yield f"{path}.param_groups", thing.param_groups
        if isinstance(getattr(thing, "__dict__", None), dict):
            yield path, holders.Attributes(thing)
        yield path, holders.Slots(thing)
        for kind in type(thing).__mro__:
            if not _is_library_type(kind):
                yield kind.__name__, kind


_PLAIN = (bool, int, float, complex, str, bytes, type(None), types.ModuleType)


def _visit_code_of(path: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The functions in a class body: they may name globals."""
    for name, value in list(vars(kind).items()):
        for part in (
            value,
            getattr(value, "__func__", None),
            *(getattr(value, side, None) for side in ("fget", "fset", "fdel", "func")),
        ):
            if isinstance(part, types.FunctionType):
                yield f"{path}.{name}", part


def _visit_function(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    owner = owner_of(function)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in sorted(cells, key=lambda pair: _rank(_content(pair[1]))):
        yield "self" if owner is not None and _content(cell) is owner else name, cell
    yield from ((f"default of {path}", value) for value in function.__defaults__ or ())
    yield from ((f"default of {path}", value) for value in (function.__kwdefaults__ or {}).values())
    if is_library(function.__code__.co_filename):
        return
    yield path, holders.Attributes(function)
    namespace = function.__globals__
    for name in sorted(
        _names(function.__code__) & namespace.keys(),
        key=lambda name: (_rank(namespace[name]), name),
    ):
        if not isinstance(namespace[name], types.ModuleType):
            yield f"global {name}", holders.Binding(namespace, name)


def _rank(thing: Any) -> int:
    """A parameter is better known by its module than by an optimizer that holds it too."""
    return 0 if isinstance(thing, torch.nn.Module) else 1


def owner_of(function: Callable[..., Any]) -> Any:
    """The object whose method `function` is, or None.

    Dynamo wraps some modules in a function of its own, which holds the module in its closure.
    """
    owner = getattr(function, "__self__", None)
    if owner is not None or not isinstance(function, types.FunctionType):
        return owner
    if not is_library(function.__code__.co_filename):
        return None
    held = (_content(cell) for cell in function.__closure__ or ())
    owners = (getattr(thing, "__self__", thing) for thing in held)
    return next((thing for thing in owners if isinstance(thing, torch.nn.Module)), None)


def _content(cell: types.CellType) -> Any:
    with contextlib.suppress(ValueError):  # An empty cell.
        return cell.cell_contents
    return None


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


@functools.cache
def is_library(filename: str) -> bool:
    """Whether a source file belongs to an installed package, or to Python itself."""
    path = os.path.realpath(filename)
    return path.startswith(_STANDARD_LIBRARY) or _INSTALLED.search(path) is not None


def _is_library_type(kind: type) -> bool:
    if kind.__module__.startswith(_OUR_NAME):
        return True
    home = sys.modules.get(kind.__module__)
    if home is None:  # Run by its path: no library is.
        return False
    filename = getattr(home, "__file__", None)
    return kind.__module__ != "__main__" if filename is None else is_library(filename)


def _is_file(thing: Any) -> bool:
    return callable(getattr(thing, "fileno", None))


def is_instance_of_program(thing: Any) -> bool:
    """Whether its class is the program's own: no library's, and no module, which is state."""
    return not (isinstance(thing, torch.nn.Module) or callable(thing)) and not _is_library_type(
        type(thing)
    )


def _is_walked(thing: Any) -> bool:
    """Objects whose attributes hold state: modules, optimizers, the program's own instances."""
    if _is_file(thing):
        return False
    if isinstance(
        thing, (torch.nn.Module, torch.optim.Optimizer, types.SimpleNamespace, functools.partial)
    ):
        return True
    if type(thing).__module__.startswith(_WALKED_LIBRARIES):
        return True
    return not _is_library_type(type(thing))
