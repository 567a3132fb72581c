"""Attaches the audit to a process, before it has imported torch.

The shadow itself needs torch, and is loaded when the program has loaded torch's compiler.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from types import ModuleType

from measured import events, observe


def hooks(log: events.Log) -> dict[str, Callable[[ModuleType], None]]:
    """What to do when which module has been imported."""
    return {
        "torch._dynamo.eval_frame": lambda module: _shadow(module, log),
        "torch._dynamo.output_graph": _count,
        "torch._inductor.fx_passes.replace_random": lambda m: observe.listen_to_draws(m, log),
    }


def _shadow(eval_frame: ModuleType, log: events.Log) -> None:
    from measured import shadow

    shadow.shadow_what_dynamo_returns(eval_frame, log)
    atexit.register(shadow.tell_total, log)


def _count(output_graph: ModuleType) -> None:
    from measured import shadow

    shadow.count_entries(output_graph)
