"""An audit in this very process, for programs that need no process of their own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch._dynamo import eval_frame, output_graph

from measured import events, shadow
from measured.record import Call
from measured.run import merge_gradients


@contextlib.contextmanager
def audited() -> Iterator[Callable[[], list[Call]]]:
    """Shadow `torch.compile` in this block. Call what it gives for the verdicts so far."""
    shadowed = (
        (eval_frame._TorchDynamoContext, "__call__"),
        (output_graph.OutputGraph, "call_user_compiler"),
    )
    originals = [getattr(owner, name) for owner, name in shadowed]
    torch._dynamo.reset()
    try:
        with tempfile.TemporaryDirectory(prefix="measured-") as folder:
            log = Path(folder) / "events"
            shadow.shadow_what_dynamo_returns(eval_frame, events.Log(log))
            shadow.count_entries(output_graph)

            def calls() -> list[Call]:
                called = [e.call for e in events.read(log) if isinstance(e, events.Called)]
                return merge_gradients(called)

            yield calls
    finally:
        for (owner, name), original in zip(shadowed, originals, strict=True):
            setattr(owner, name, original)
        torch._dynamo.reset()
