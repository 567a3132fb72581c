"""Which part of a stage a difference comes from: torch's own bisector asks, forked runs answer.

`python -m measured.bisection`. Each run is a fork of a process that has imported torch and run
nothing: what a program changes in torch, or registers there, the next run does not see. What the
bisector keeps between runs is in files.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from measured import events, program
from measured.child import Job, Target

SUBSYSTEMS = {
    "decomposition": "decompositions",
    "pre_grad_passes": "passes before the backward graph (pre_grad_passes)",
    "joint_graph_passes": "passes on the joint graph (joint_graph_passes)",
    "post_grad_passes": "passes after the partitioner (post_grad_passes)",
    "lowerings": "lowerings",
}
"""The bisector's name -> ours."""


def main(job: Job) -> None:
    """Bisect, and write an event that says what was found."""
    assert job.target is not None
    if not hasattr(os, "fork"):
        events.Log(job.events).write(events.Bisected("", "this system can not fork a process"))
        return
    for name in ("torch._dynamo", "torch._inductor.compile_fx"):
        importlib.import_module(name)  # Once, and not in each fork.
    from torch._inductor.compiler_bisector import BACKENDS, CompilerBisector

    _be_silent()
    _name_operations(CompilerBisector)
    # Its own folder: it empties the one it is given.
    CompilerBisector.in_process_cache = f"{job.events}.bisector"

    def agrees() -> bool:
        if not CompilerBisector.get_subsystem():
            # Which stage it is has been found before.
            return CompilerBisector.get_backend() != job.stage
        return not _shows(job, job.target)

    try:
        told = said(CompilerBisector.do_bisect(agrees), BACKENDS[job.stage])
    except Exception as error:  # The bisector says so when a part seems to matter and then not.
        told = events.Bisected("", f"the bisector failed: {error}")
    events.Log(job.events).write(told)


def said(result: Any, subsystems: list[Any]) -> events.Bisected:
    """A `BisectionResult` in words. `subsystems` are those of its backend, as torch lists them."""
    if result is None or result.subsystem is None:
        return events.Bisected("", "no part that can be switched off makes it go away")
    part = next(one for one in subsystems if one.name == result.subsystem)
    if hasattr(part, "config_field"):
        return events.Bisected(f"gone with {part.config_field} = {part.config_value}", "")
    name = SUBSYSTEMS.get(result.subsystem, result.subsystem)
    which = f"{name}, number {result.bisect_number} from 0"
    return events.Bisected(f"{which}: {result.debug_info or 'unnamed'}", "")


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _name_operations(bisector: Any) -> None:
    """Let the bisector say which operation it is, and not only what its node is called."""
    disable = bisector.disable_subsystem

    def disable_and_name(
        backend: str, subsystem: str, debug_info: Callable[[], str] | None = None
    ) -> bool:
        return disable(backend, subsystem, debug_info and (lambda: _named(debug_info)))

    bisector.disable_subsystem = staticmethod(disable_and_name)


def _named(debug_info: Callable[[], str]) -> str:
    import torch

    for cell in debug_info.__closure__ or ():
        if isinstance(node := cell.cell_contents, torch.fx.Node):
            return str(node.target)
        if isinstance(node, torch._ops.OpOverload):
            return str(node)
    return debug_info()


def _shows(job: Job, target: Target) -> bool:
    """Whether a run of the program shows the difference."""
    Path(job.events).unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            if job.memory_bytes:
                program.limit(job)
            program.execute(job.script, job.arguments)
        # Without the clean-up of a process, which is its parent's.
        os._exit(0)
    os.waitpid(child, 0)
    called = [e for e in events.read(job.events) if isinstance(e, events.Called)]
    pids = list(dict.fromkeys(event.pid for event in called))
    return any(
        target == Target(pids.index(e.pid), e.call.callable_index, e.call.number, d.kind, d.path)
        for e in called
        for d in e.call.differences
    )


if __name__ == "__main__":
    main(msgspec.json.decode(Path(os.environ["MEASURED_JOB"]).read_bytes(), type=Job))
