"""An audit in this very process, for programs that need no process of their own."""

from __future__ import annotations

import contextlib
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch._dynamo import convert_frame, eval_frame, output_graph

from measured import ahead, benchmarks, due, events, shadow
from measured.record import Call
from measured.run import merge_gradients

_REPLACED = (
    (eval_frame._TorchDynamoContext, "__call__"),
    (output_graph.OutputGraph, "call_user_compiler"),
    (convert_frame.CatchErrorsWrapper, "__call__"),
    (timeit.Timer, "timeit"),
    (torch.autograd, "_engine_run_backward"),
    (torch.nn.Module, "load_state_dict"),
    (torch.optim.Optimizer, "load_state_dict"),
)
"""What the audit replaces in torch, to be put back."""


@contextlib.contextmanager
def audited(log: Path) -> Iterator[Callable[[], list[Call]]]:
    """Shadow `torch.compile` in this block. Call what it gives for the verdicts so far.

    `log` is a file to keep the events in.
    """
    originals = [getattr(owner, name) for owner, name in _REPLACED]
    torch._dynamo.reset()
    try:
        shadow.shadow_what_dynamo_returns(eval_frame, events.Log(log))
        shadow.count_entries(output_graph)
        shadow.stop_when_compiler_is_asked(convert_frame)
        benchmarks.notice(timeit)
        ahead.look_ahead(torch.autograd)
        for owner in (torch.nn.Module, torch.optim.Optimizer):
            due.notice_loads(owner)

        def calls() -> list[Call]:
            called = [e.call for e in events.read(log) if isinstance(e, events.Called)]
            return merge_gradients(called)

        yield calls
    finally:
        for (owner, name), original in zip(_REPLACED, originals, strict=True):
            setattr(owner, name, original)
        torch._dynamo.reset()
