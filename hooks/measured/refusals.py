"""Which exceptions come from compiling, not from running; and whether one ended the process."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import weakref

from measured import events

_RAISE_PLAINLY = (
    "torch._dynamo.eval_frame",
    "torch._dynamo.aot_compile",
    "torch._export.utils",
    "torch.export._unlift",
    "torch.export.pt2_archive._package",
)
"""Modules that raise plain exceptions: for a stance that forbids to compile, and for arguments that
an artefact was not made for. A package says no more than that it could not run."""

_noted: weakref.WeakSet[BaseException] = weakref.WeakSet()


def is_refusal(error: BaseException) -> bool:
    """Whether compiling failed, as opposed to running what was compiled."""
    if any(
        kind.__module__.startswith(("torch._dynamo", "torch._inductor", "torch.fx"))
        for kind in type(error).__mro__
    ):
        return True
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and (
        frames[-1].f_globals.get("__name__") in _RAISE_PLAINLY
        or any(type(frame.f_locals.get("self")).__name__ == "GuardsFn" for frame in frames)
    )


def note(error: BaseException) -> None:
    """Remember that the program got this refusal where eager raises nothing."""
    # An exception of a type without weak references is raised by C code alone, never by a compiler.
    with contextlib.suppress(TypeError):
        _noted.add(error)


def tell_if_fatal(log: events.Log) -> None:
    """At the end of the process: write whether it died of a noted refusal, or of what came of it.

    Python leaves the exception that ended a program in `sys.last_value`.
    """
    error: BaseException | None = getattr(sys, "last_value", None)
    while error is not None:
        if error in _noted:
            log.write(events.DiedOfRefusal(os.getpid()))
            return
        error = error.__cause__ or error.__context__
