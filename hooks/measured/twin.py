"""The twin is apart in time, not in space: save what a call can reach, run, put it back.

No function, module or optimizer is copied. `reach` walks from a callable and its arguments to
every tensor and mutable container the call could read or write; a `Snapshot` holds their
contents, and restoring writes them back in place, so that identities stay what they were.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import os
import random
import re
import sys
import sysconfig
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

MAX_OBJECTS = 200_000
"""A call that reaches more objects than this is not shadowed, and the audit says so."""

_STANDARD_LIBRARY = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
"""Packages may be installed in more places than this interpreter's own: overlays, user folders."""
_OURS = os.path.dirname(__file__) + os.sep


class TooLarge(Exception):
    """The call reaches too much to be saved."""


@dataclasses.dataclass
class Reach:
    """What a call can reach: (path, object) in the order of discovery, each object once."""

    tensors: dict[int, tuple[str, torch.Tensor]] = dataclasses.field(default_factory=dict)
    containers: dict[int, tuple[str, Any]] = dataclasses.field(default_factory=dict)
    """dicts, lists, sets, deques, bytearrays and closure cells."""
    bindings: list[tuple[str, dict[str, Any], str]] = dataclasses.field(default_factory=list)
    """Module globals that the code names: (path, namespace, name)."""


def reach(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reach:
    """Everything that the call can reach by attribute, item, closure or global."""
    found = Reach()
    seen: set[int] = set()
    names: collections.Counter[str] = collections.Counter()
    pending: list[tuple[str, Any]] = [("", function), ("kwargs", kwargs), ("args", args)]
    while pending:
        path, thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if len(seen) > MAX_OBJECTS:
            raise TooLarge(f"reaches more than {MAX_OBJECTS} objects")
        # Two things may be reached by the same words; each needs a name of its own. A cell, a
        # method or a function only leads to the thing that it names.
        if not isinstance(thing, (types.CellType, types.MethodType, types.FunctionType)):
            names[path] += 1
            if names[path] > 1:
                path = f"{path}#{names[path]}"
        # Reversed, so that what is yielded first is visited, and named, first.
        pending.extend(reversed(list(_visit(found, path, thing))))
    return found


def _visit(found: Reach, path: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, torch.Tensor):
        found.tensors[id(thing)] = (path, thing)
        if thing.is_leaf and thing.grad is not None:
            yield f"{path}.grad", thing.grad
    elif isinstance(thing, dict):
        found.containers[id(thing)] = (path, thing)
        for key, value in list(thing.items()):
            yield f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]", value
            if isinstance(key, torch.Tensor):
                yield f"key of {path}", key
    elif isinstance(thing, (list, collections.deque)):
        found.containers[id(thing)] = (path, thing)
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(list(thing)))
    elif isinstance(thing, (tuple, frozenset)):
        yield from ((f"{path}[{i}]", item) for i, item in enumerate(thing))
    elif isinstance(thing, set):
        found.containers[id(thing)] = (path, thing)
        yield from ((f"item of {path}", item) for item in list(thing))
    elif isinstance(thing, bytearray):
        found.containers[id(thing)] = (path, thing)
    elif isinstance(thing, types.CellType):
        found.containers[id(thing)] = (path, thing)
        with contextlib.suppress(ValueError):  # An empty cell.
            yield path, thing.cell_contents
    elif isinstance(thing, types.MethodType):
        yield "self", thing.__self__
        yield path, thing.__func__
    elif isinstance(thing, types.FunctionType):
        if thing.__code__.co_filename.startswith(_OURS):
            # The audit's own state is not the program's: go on with what the shadow stands for.
            yield path, getattr(thing, "_torchdynamo_orig_callable", None)
        else:
            yield from _visit_function(found, path, thing)
    elif _is_walked(thing):
        attributes = getattr(thing, "__dict__", None)
        if isinstance(attributes, dict):
            found.containers[id(attributes)] = (path, attributes)
            for name, value in list(attributes.items()):
                yield from _visit_attribute(path, thing, name, value)
        for name in ("forward", "__call__"):
            method = getattr(type(thing), name, None)
            if isinstance(method, types.FunctionType):
                yield path, method


def _visit_attribute(path: str, owner: Any, name: str, value: Any) -> Iterator[tuple[str, Any]]:
    # A module keeps its parts in tables; a reader knows them as attributes.
    if name in ("_parameters", "_buffers", "_modules") and isinstance(owner, torch.nn.Module):
        yield from ((f"{path}.{key}", item) for key, item in value.items())
        yield f"{path}.{name}", value
    else:
        yield f"{path}.{name}", value


def _visit_function(
    found: Reach, path: str, function: types.FunctionType
) -> Iterator[tuple[str, Any]]:
    library = _is_library(function.__code__.co_filename)
    owner = owner_of(function)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield "self" if owner is not None and _content(cell) is owner else name, cell
    yield from ((f"default of {path}", value) for value in function.__defaults__ or ())
    if library:
        return
    for name in _names(function.__code__):
        namespace = function.__globals__
        if name in namespace and not isinstance(namespace[name], types.ModuleType):
            found.bindings.append((name, namespace, name))
            yield name, namespace[name]


def owner_of(function: Callable[..., Any]) -> Any:
    """The object whose method `function` is, or None.

    Dynamo wraps some modules in a function of its own, which holds the module in its closure.
    """
    owner = getattr(function, "__self__", None)
    if owner is not None or not isinstance(function, types.FunctionType):
        return owner
    if not _is_library(function.__code__.co_filename):
        return None
    held = (_content(cell) for cell in function.__closure__ or ())
    owners = (getattr(thing, "__self__", thing) for thing in held)
    return next((thing for thing in owners if isinstance(thing, torch.nn.Module)), None)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # An empty cell.
        return None


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


@functools.cache
def _is_library(filename: str) -> bool:
    path = os.path.realpath(filename)
    return path.startswith(_STANDARD_LIBRARY) or _INSTALLED.search(path) is not None


def _is_walked(thing: Any) -> bool:
    """Objects whose attributes hold state: modules, optimizers, the program's own instances."""
    if isinstance(thing, (types.ModuleType, type)) or callable(getattr(thing, "fileno", None)):
        return False
    if isinstance(thing, (torch.nn.Module, torch.optim.Optimizer)):
        return True
    home = sys.modules.get(type(thing).__module__)
    filename = getattr(home, "__file__", None)
    if type(thing).__module__.startswith(("torch.optim", "torch.amp", "torch.nn")):
        return True
    return filename is not None and not _is_library(filename)


@dataclasses.dataclass
class _TensorState:
    tensor: torch.Tensor
    alias: torch.Tensor
    """Shares storage, sizes and strides with the tensor as it was."""
    version: int
    grad_fn: Any
    grad: torch.Tensor | None
    requires_grad: bool


class Snapshot:
    """The contents of everything in a `Reach`, and the random streams, at one moment."""

    def __init__(self, reached: Reach) -> None:
        self.reached = reached
        self._storages: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self._tensors: dict[int, _TensorState] = {}
        self._containers = {
            key: (thing, _contents(thing)) for key, (_, thing) in reached.containers.items()
        }
        self._bindings = [
            (namespace, name, namespace.get(name, _MISSING))
            for _, namespace, name in reached.bindings
        ]
        self._random = _random_state()
        with torch.no_grad():
            for key, (_, tensor) in reached.tensors.items():
                self._save(key, tensor)

    def _save(self, key: int, tensor: torch.Tensor) -> None:
        if tensor.layout is not torch.strided or type(tensor).__torch_dispatch__ is not (
            torch.Tensor.__torch_dispatch__
        ):
            return  # No single storage: its parts are not saved yet, see the audit's report.
        storage = tensor.untyped_storage()
        address = storage._cdata
        if address not in self._storages:
            self._storages[address] = (storage, storage.clone())
        self._tensors[key] = _TensorState(
            tensor=tensor,
            alias=tensor.detach(),
            version=0 if tensor.is_inference() else tensor._version,
            grad_fn=tensor.grad_fn,
            grad=tensor.grad if tensor.is_leaf else None,
            requires_grad=tensor.requires_grad,
        )

    def restore(self) -> list[str]:
        """Write everything back in place. Returns the paths of what could not be restored."""
        failed = []
        with torch.no_grad():
            for storage, saved in self._storages.values():
                if storage.nbytes() != saved.nbytes():
                    storage.resize_(saved.nbytes())
                storage.copy_(saved)
            for key, state in self._tensors.items():
                if not self._restore_tensor(state):
                    failed.append(self.reached.tensors[key][0])
        for thing, contents in self._containers.values():
            _put_back(thing, contents)
        for namespace, name, value in self._bindings:
            if value is _MISSING:
                namespace.pop(name, None)
            else:
                namespace[name] = value
        _set_random_state(self._random)
        return failed

    @staticmethod
    def _restore_tensor(state: _TensorState) -> bool:
        tensor, alias = state.tensor, state.alias
        if tensor.is_inference():
            return True
        if (
            tensor.shape != alias.shape
            or tensor.stride() != alias.stride()
            or tensor.data_ptr() != alias.data_ptr()
        ):
            tensor.data = alias
        if tensor.grad_fn is not state.grad_fn:
            # An in-place write gave it a history. Only a tensor without one can be taken back.
            if state.grad_fn is not None or tensor._is_view():
                return False
            tensor.detach_()
        if tensor.grad_fn is None:
            tensor.requires_grad_(state.requires_grad)
            if tensor.grad is not state.grad:
                tensor.grad = state.grad
        if tensor._version != state.version:
            torch._C._autograd._unsafe_set_version_counter((tensor,), (state.version,))
        return True

    def state(self) -> dict[str, Any]:
        """What the program could see of this moment: path -> tensor contents or plain values.

        Tensors stand on their own storage; containers appear by their plain items only, because
        their tensors are listed themselves.
        """
        seen: dict[str, Any] = {}
        copies = {address: saved for address, (_, saved) in self._storages.items()}
        for key, state in self._tensors.items():
            path, _ = self.reached.tensors[key]
            copy = copies[state.alias.untyped_storage()._cdata]
            seen[path] = torch.empty(0, dtype=state.alias.dtype, device=copy.device).set_(
                copy, state.alias.storage_offset(), state.alias.shape, state.alias.stride()
            )
            if state.grad is not None:
                seen[f"{path}.grad"] = state.grad.detach().clone()
        for key, (_, contents) in self._containers.items():
            path, _ = self.reached.containers[key]
            seen |= _plain_items(path, contents)
        for (path, _, _), (_, _, value) in zip(self.reached.bindings, self._bindings, strict=True):
            if _is_plain(value):
                seen[f"global {path}"] = value
        return seen


_MISSING = object()


def _contents(thing: Any) -> Any:
    if isinstance(thing, types.CellType):
        try:
            return thing.cell_contents
        except ValueError:
            return _MISSING
    if isinstance(thing, dict):
        return list(thing.items())
    return list(thing)


def _put_back(thing: Any, contents: Any) -> None:
    if isinstance(thing, types.CellType):
        if contents is _MISSING:
            with contextlib.suppress(ValueError):
                del thing.cell_contents
        else:
            thing.cell_contents = contents
    elif isinstance(thing, dict):
        # Untouched is the rule, and writing to an untouched dict would invalidate dict-version
        # guards that Dynamo may hold on it.
        if not _same(list(thing.items()), contents):
            thing.clear()
            thing.update(contents)
    elif isinstance(thing, set):
        if thing != set(contents):
            thing.clear()
            thing.update(contents)
    elif isinstance(thing, bytearray):
        thing[:] = bytes(contents)
    elif not _same(list(thing), contents):
        thing.clear()
        thing.extend(contents)


def _same(now: list[Any], before: list[Any]) -> bool:
    if len(now) != len(before):
        return False
    return all(
        (a is b) or (isinstance(a, tuple) and a[0] is b[0] and a[1] is b[1])
        for a, b in zip(now, before, strict=True)
    )


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str, bytes, bool, type(None)))


def _plain_items(path: str, contents: Any) -> dict[str, Any]:
    if isinstance(contents, list):
        if contents and all(isinstance(item, tuple) and len(item) == 2 for item in contents):
            return {
                f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]": value
                for key, value in contents
                if isinstance(key, (str, int)) and _is_plain(value)
            }
        plain: dict[str, Any] = {f"length of {path}": len(contents)}
        plain |= {f"{path}[{i}]": item for i, item in enumerate(contents) if _is_plain(item)}
        return plain
    return {path: contents} if _is_plain(contents) else {}


def _random_state() -> dict[str, Any]:
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if numpy := sys.modules.get("numpy"):
        state["numpy"] = numpy.random.get_state()
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        sys.modules["numpy"].random.set_state(state["numpy"])


class _Nowhere:
    """A text stream that keeps nothing."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing printed, logged or warned in this block is seen, by Python or by C++ code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # The program may have closed or replaced it.
            stream.flush()
    kept: dict[int, int] = {}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # The program may have closed it.
                kept[descriptor] = os.dup(descriptor)
                os.dup2(nowhere, descriptor)
        with (
            contextlib.redirect_stdout(_Nowhere()),
            contextlib.redirect_stderr(_Nowhere()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)


_MODES = {
    "grad": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
}


@contextlib.contextmanager
def _keeping_modes() -> Iterator[None]:
    before = {name: get() for name, (get, _) in _MODES.items()}
    try:
        yield
    finally:
        for name, (get, put) in _MODES.items():
            if get() != before[name]:
                put(before[name])


class _Thread(threading.local):
    running = False


_thread = _Thread()


def is_running() -> bool:
    """Whether this thread runs a twin: compiled callables inside it are to run eagerly too."""
    return _thread.running


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Run a twin in this block: silent, and with the global modes put back afterwards."""
    with _silence(), _keeping_modes():
        _thread.running = True
        try:
            yield
        finally:
            _thread.running = False


@dataclasses.dataclass
class Arguments:
    """Arguments for a twin: those of the call, with stand-ins for tensors that have a history.

    A tensor that other operations made can be written to in place, and then its history can not
    be put back; and a backward pass from the twin would run on into the program's own graph. So
    the twin gets a copy, behind a leaf at which its gradient is read.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: dict[str, torch.Tensor]
    """Path of the tensor in the call -> where the gradient of its stand-in arrives."""
    copies: dict[str, torch.Tensor]
    """Path of the tensor in the call -> its stand-in."""

    def state(self) -> dict[str, torch.Tensor]:
        """What the twin left in the stand-ins."""
        return {path: copy.detach().clone() for path, copy in self.copies.items()}


def stand_ins(reached: Reach, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments of a call for its twin."""
    leaves: dict[str, torch.Tensor] = {}
    copies: dict[str, torch.Tensor] = {}
    by_identity: dict[int, torch.Tensor] = {}

    def replace(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.grad_fn is None or id(tensor) not in reached.tensors:
            return tensor
        if id(tensor) not in by_identity:
            path, _ = reached.tensors[id(tensor)]
            with torch.enable_grad():
                leaves[path] = tensor.detach().requires_grad_()
                copies[path] = leaves[path].clone()
            by_identity[id(tensor)] = copies[path]
        return by_identity[id(tensor)]

    new_args, new_kwargs = tree_map_only(torch.Tensor, replace, (args, kwargs))
    return Arguments(new_args, new_kwargs, leaves, copies)


class Modes:
    """Grad mode, inference mode and autocast of the caller, to be entered again later."""

    def __init__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._autocast = [
            (device, torch.get_autocast_dtype(device))
            for device in ("cpu", "cuda")
            if torch.is_autocast_enabled(device)
        ]

    @contextlib.contextmanager
    def again(self, *, backward: bool) -> Iterator[None]:
        """The caller's modes; with gradients where a backward pass is to follow."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(self._grad or backward))
            for device, dtype in self._autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
            yield
