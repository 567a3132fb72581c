"""Puts an auditor in front of every compiled callable; loaded once torch's compiler is.

`torch.compile` stays the original object. The shadow stands in front of the function that Dynamo
returns for a frame, for a module's call, for an optimizer's step. Types, signatures, attributes and
graph counts are what they are without it, and when another compile traces through, Dynamo follows
the attributes to the original function and never sees the shadow.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from measured import auditor, events, stages, tracing, twin


def count_entries(output_graph: ModuleType) -> None:
    """Let every graph that a backend compiled say when it runs."""
    call_user_compiler = output_graph.OutputGraph.call_user_compiler

    @functools.wraps(call_user_compiler)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = call_user_compiler(self, *args, **kwargs)

        @functools.wraps(compiled)
        def entered(*args: Any, **kwargs: Any) -> Any:
            auditor.thread.entered += 1
            return compiled(*args, **kwargs)

        return entered

    output_graph.OutputGraph.call_user_compiler = counted


def stop_when_compiler_is_asked(convert_frame: ModuleType) -> None:
    """Let a call that is not checked be checked after all where no compiled code fits it: at its
    first compile, at a recompilation, and where the limit of those is hit."""
    convert = convert_frame.CatchErrorsWrapper.__call__

    @functools.wraps(convert)
    def asked(self: Any, frame: FrameType, *args: Any, **kwargs: Any) -> Any:
        call = auditor.thread.unchecked
        if (
            call is not None
            and call.entered == auditor.thread.entered
            and _nothing_has_run(sys._getframe(1))
            and call.due.compiles()
        ):
            raise auditor.CompilerAsked
        return convert(self, frame, *args, **kwargs)

    convert_frame.CatchErrorsWrapper.__call__ = asked


_CALLING_A_MODULE = {"_wrapped_call_impl", "_call_impl"}
_HOOKS_BEFORE = ("_forward_pre_hooks", "_backward_pre_hooks")


def _nothing_has_run(frame: FrameType | None) -> bool:
    """Whether the frame that is about to start is the first of its call that does anything.

    Between it and the shadow there may be frames of Dynamo, and those by which a module is called.
    """
    while frame is not None and frame.f_code.co_filename != __file__:
        name = frame.f_globals.get("__name__")
        if name == "torch.nn.modules.module" and frame.f_code.co_name in _CALLING_A_MODULE:
            module = frame.f_locals.get("self")
            if any(getattr(module, hooks) for hooks in _HOOKS_BEFORE):
                return False
        elif not str(name).startswith(("torch._dynamo.", "measured.")):
            return False
        frame = frame.f_back
    return frame is not None


def shadow_what_dynamo_returns(eval_frame: ModuleType, log: events.Log) -> None:
    """Put a shadow in front of every function that Dynamo returns for a compiled callable."""
    context = eval_frame._TorchDynamoContext
    wrap = context.__call__

    @functools.wraps(wrap)
    def wrap_and_shadow(self: Any, fn: Any) -> Any:
        compiled = wrap(self, fn)
        original = getattr(compiled, "_torchdynamo_orig_callable", None)
        if not isinstance(compiled, FunctionType) or original is None:
            return compiled
        stage = stages.of_backend(eval_frame.innermost_backend(self.callback))
        return _shadow(compiled, original, log, stage)

    context.__call__ = wrap_and_shadow


def _shadow(
    compiled: FunctionType, original: Callable[..., Any], log: events.Log, stage: str
) -> FunctionType:
    audit = auditor.Auditor(compiled, original, log, stage)

    # wraps() copies the attributes by which Dynamo finds the original when it traces a call.
    @functools.wraps(compiled)
    def shadowed(*args: Any, **kwargs: Any) -> Any:
        if twin.is_running():
            return original(*args, **kwargs)
        if auditor.thread.checking or tracing.is_tracing():
            return compiled(*args, **kwargs)
        # The caller may itself be running under Dynamo: nothing of the audit is to be traced.
        prior = set_eval_frame(None)
        try:
            return audit.call(args, kwargs)
        finally:
            set_eval_frame(prior)

    del shadowed.__wrapped__
    if hasattr(compiled, "__wrapped__"):
        shadowed.__wrapped__ = compiled.__wrapped__
    shadowed._torchdynamo_wrapper_id = id(shadowed)
    torch._dynamo.eval_frame.skip_code(shadowed.__code__)
    return shadowed
