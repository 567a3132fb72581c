"""Attaches the audit to a process, before it has imported torch.

The shadow itself needs torch, and is loaded when the program has loaded torch's compiler.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from measured import benchmarks, events


def hooks(log: events.Log) -> dict[str, Callable[[ModuleType], None]]:
    """What to do when which module has been imported."""
    return {
        "torch._dynamo.eval_frame": lambda module: _shadow(module, log),
        "torch._dynamo.output_graph": _count,
        "torch._dynamo.convert_frame": _stop_when_asked,
        "timeit": benchmarks.notice,
        "torch._dynamo.aot_compile": lambda module: _artefacts().note_functions(module, log),
        "torch._inductor": note_compiled_files,
        "torch.export._trace": lambda module: _artefacts().note_exports(module),
        "torch.export._unlift": lambda module: _artefacts().note_modules_of_programs(module, log),
        "torch.export.pt2_archive._package": lambda module: _artefacts().note_packages(module, log),
    }


def _artefacts() -> ModuleType:
    from measured import artefacts

    return artefacts


def note_compiled_files(inductor: ModuleType) -> None:
    """Note from which module the files come that AOTInductor writes."""
    compiler = inductor.aot_compile

    @functools.wraps(compiler)
    def compile_ahead(*args: Any, **kwargs: Any) -> Any:
        # Not before: Dynamo, which the artefacts need whole, may be what imports Inductor.
        return _artefacts().compile_ahead(compiler, *args, **kwargs)

    inductor.aot_compile = compile_ahead


def _shadow(eval_frame: ModuleType, log: events.Log) -> None:
    import torch

    from measured import ahead, auditor, due, refusals, shadow

    shadow.shadow_what_dynamo_returns(eval_frame, log)
    ahead.look_ahead(torch.autograd)
    for owner in (torch.nn.Module, torch.optim.Optimizer):
        due.notice_loads(owner)
    atexit.register(auditor.tell_total, log)
    atexit.register(refusals.tell_if_fatal, log)


def _count(output_graph: ModuleType) -> None:
    from measured import shadow

    shadow.count_entries(output_graph)


def _stop_when_asked(convert_frame: ModuleType) -> None:
    from measured import shadow

    shadow.stop_when_compiler_is_asked(convert_frame)
