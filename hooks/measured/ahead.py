"""Watches the gradients of compiled calls in a backward pass that is compiled as it runs.

Compiled autograd would trace a hook on a node into what it compiles. So the calls are watched in a
pass of their own, ahead of the program's: the same graph, captured by compiled autograd and run as
it was captured, without a compiler. What the compiler then makes of the program's own pass is
audited as every compiled call is, and finds the graph without a hook of the audit's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from measured import gradients, holders, twin


def look_ahead(autograd: ModuleType) -> None:
    """Look before each backward pass that compiled autograd is on for."""
    run_backward = autograd._engine_run_backward

    @functools.wraps(run_backward)
    def looking(outputs: Sequence[Any], grads: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        compiled = sys.modules.get("torch._dynamo.compiled_autograd")
        if compiled and compiled.compiled_autograd_enabled and not twin.is_running():
            _look(functools.partial(run_backward, outputs, grads), outputs, compiled)
        return run_backward(outputs, grads, *args, **kwargs)

    # Else Dynamo traces this very function where a compiled one calls `backward()`.
    sys.modules["torch._dynamo.eval_frame"].skip_code(looking.__code__)
    autograd._engine_run_backward = looking


def _look(run: Callable[..., Any], outputs: Sequence[Any], compiled: ModuleType) -> None:
    roots = (thing.node if hasattr(thing, "node") else thing.grad_fn for thing in outputs)
    watches = gradients.watches(roots)
    edges = {edge for watch in watches for edge in watch.inputs}
    if not edges:
        return
    for watch in watches:
        watch.is_told = True
    obstacle, streams = "", holders.streams()
    try:
        with twin.eagerly(), compiled._enable(_as_it_is):
            run(
                True,  # Keep the graph.
                False,
                tuple(torch.autograd.graph.GradientEdge(*edge) for edge in edges),
                allow_unreachable=True,
                accumulate_grad=False,
            )
    except Exception as error:
        obstacle = f"the pass ahead of compiled autograd's ended with {type(error).__name__}"
    finally:
        holders.set_streams(streams)
    for watch in watches:
        watch.finish(obstacle)


def _as_it_is(graph: Any) -> Any:
    return graph
