"""The twin is apart in time, not in space: eager runs on the program's own objects, unnoticed.

No function, module or optimizer is copied. Whoever runs a twin takes a `Snapshot` before, and puts
it back after; what this module adds is that nothing is heard of the run meanwhile, and that no
history of the program's tensors gets into it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from measured import modes
from measured.reach import Reach


class _Nowhere(io.TextIOWrapper):
    """A text stream, with a buffer below it, that keeps nothing."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def write(self, text: str) -> int:
        return len(text)


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
            _no_warnings(),
            _no_logging(),
        ):
            yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        os.close(nowhere)


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Warnings neither appear nor count as given, so that the program still gives each of them.

    `warnings.catch_warnings` would let warnings that were given once be given again; and C++ code
    that warns once marks that it has, unless it is told to warn always.
    """
    ignore = ("ignore", None, Warning, None, 0)
    always = torch.is_warn_always_enabled()
    filters = warnings.filters
    filters.insert(0, ignore)
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(always)
        with contextlib.suppress(ValueError):
            filters.remove(ignore)


@contextlib.contextmanager
def _no_logging() -> Iterator[None]:
    """Handlers of the program may count, or write to a file."""
    disabled = logging.root.manager.disable
    logging.disable(sys.maxsize)
    try:
        yield
    finally:
        logging.disable(disabled)


@contextlib.contextmanager
def _no_saved_tensor_hooks() -> Iterator[None]:
    """Hooks of the program on saved tensors count what they see: they must not see a twin's."""
    engine = torch._C._autograd
    hooks = []
    while (pair := engine._top_saved_tensors_default_hooks(True)) is not None:
        hooks.append(pair)
        engine._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(hooks):
            engine._push_saved_tensors_default_hooks(pack, unpack)


class _Thread(threading.local):
    running = False


_thread = _Thread()


def is_running() -> bool:
    """Whether this thread runs a twin: compiled callables inside it are to run eagerly too."""
    return _thread.running


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Run a twin in this block: silent, and with the process's switches put back afterwards."""
    with _silence(), modes.kept(), _no_saved_tensor_hooks():
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
    originals: dict[int, torch.Tensor]
    """Identity of a stand-in -> the tensor that it stands for."""
    histories: dict[int, Any]
    """Identity of a stand-in -> its `grad_fn` before the call."""


def stand_ins(reached: Reach, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments of a call for its twin."""
    leaves: dict[str, torch.Tensor] = {}
    copies: dict[str, torch.Tensor] = {}
    originals: dict[int, torch.Tensor] = {}
    histories: dict[int, Any] = {}

    def replace(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.grad_fn is None or id(tensor) not in reached.tensors:
            return tensor
        path, _ = reached.tensors[id(tensor)]
        if path not in copies:
            # A subclass that wraps what its operations return would make no leaf of it.
            with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
                leaves[path] = tensor.detach().requires_grad_()
                copy = leaves[path].clone()
                copies[path] = (
                    copy if type(copy) is type(tensor) else copy.as_subclass(type(tensor))
                )
            originals[id(copies[path])] = tensor
            histories[id(copies[path])] = copies[path].grad_fn
        return copies[path]

    if not any(reached.histories.values()):
        return Arguments(args, kwargs, leaves, copies, originals, histories)
    new_args, new_kwargs = tree_map_only(torch.Tensor, replace, (args, kwargs))
    return Arguments(new_args, new_kwargs, leaves, copies, originals, histories)
