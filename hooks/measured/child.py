"""Attaches the observer or the audit to a process of a run, before it has imported torch.

Nothing here imports torch. The listeners wait for the snippet to import it, so that what the
snippet does before that (set TORCH_LOGS, choose threads) has the effect it has for a reader.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import wrapt

from measured import events, stages


class Target(msgspec.Struct, frozen=True):
    """A difference that further runs look for."""

    process: int
    callable_index: int
    number: int
    kind: str
    path: str


class Job(msgspec.Struct, frozen=True):
    """What a child is to do; written by the parent, read once per process."""

    mode: str
    """observe, audit or bisect; the last is an audit over and over, for `bisection`."""
    events: str
    """Path of the event log."""
    script: str = ""
    """Path of the snippet's copy in the child's own folder. This and the limits are for `program`;
    a script of a user's is run by Python itself, without limits."""
    starter: int = 0
    """The process that starts it, with which it is to die."""
    arguments: list[str] = []
    """What `script` is given on its command line."""
    memory_bytes: int = 0
    """Limit on private memory of each process."""
    file_bytes: int = 0
    """Limit on the size of each file it writes."""
    fallback_random: bool = False
    """Whether Inductor is to draw random numbers as eager does."""
    lower_anew: bool = False
    """Whether caches of whole graphs are off: a graph that comes from one says nothing of draws."""
    seed: int = 0
    """Added to every seed that the program sets, and set before it: for other random inputs."""
    stage: str = ""
    """One of `stages.STAGES`: the compiler stops after it. For bisect: the stage to look in."""
    target: Target | None = None
    """For bisect: what to look for."""


def attach(job_path: str) -> None:
    """Arrange for this process to be observed, or audited, once it imports torch."""
    job = msgspec.json.decode(Path(job_path).read_bytes(), type=Job)
    log = events.Log(job.events)
    from measured import observe

    # The audit listens too: what it hears must be what was heard without it.
    hooks = [*observe.hooks(log).items()]
    if job.mode != "observe":
        from measured import audit

        hooks += audit.hooks(log).items()
    if job.mode == "audit" and job.stage:
        hooks.append(("torch._dynamo.eval_frame", lambda m: stages.stop_after(m, job.stage)))
    if job.fallback_random:
        wrapt.register_post_import_hook(_fall_back, "torch._inductor.config")
    if job.lower_anew:
        wrapt.register_post_import_hook(_forget_graphs, "torch._inductor.config")
        wrapt.register_post_import_hook(_forget_joint_graphs, "torch._functorch.config")
    if job.seed:
        wrapt.register_post_import_hook(lambda torch: _reseed(torch, job.seed), "torch")
    for module, hook in hooks:
        wrapt.register_post_import_hook(hook, module)


def _fall_back(config: ModuleType) -> None:
    config.fallback_random = True


def _reseed(torch: ModuleType, more: int) -> None:
    set_seed = torch.manual_seed

    @functools.wraps(set_seed)
    def manual_seed(seed: int) -> Any:
        return set_seed(seed + more)

    torch.manual_seed = manual_seed
    set_seed(more)


def _forget_graphs(config: ModuleType) -> None:
    config.fx_graph_cache = False


def _forget_joint_graphs(config: ModuleType) -> None:
    config.enable_autograd_cache = False
