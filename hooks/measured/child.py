"""Attaches the observer or the audit to a process of a run, before it has imported torch.

Nothing here imports torch. The listeners wait for the snippet to import it, so that what the
snippet does before that (set TORCH_LOGS, choose threads) has the effect it has for a reader.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import msgspec
import wrapt

from measured import events


class Job(msgspec.Struct, frozen=True):
    """What a child is to do; written by the parent, read once per process."""

    mode: str
    """observe or audit."""
    script: str
    """Path of the snippet's copy in the child's own folder."""
    events: str
    """Path of the event log."""
    memory_bytes: int
    """Limit on private memory of each process."""
    file_bytes: int
    """Limit on the size of each file it writes."""
    fallback_random: bool = False
    """Whether Inductor is to draw random numbers as eager does."""


def attach(job_path: str) -> None:
    """Arrange for this process to be observed, or audited, once it imports torch."""
    job = msgspec.json.decode(Path(job_path).read_bytes(), type=Job)
    log = events.Log(job.events)
    from measured import audit, observe

    # The audit listens too: what it hears must be what was heard without it.
    hooks = [*observe.hooks(log).items()]
    if job.mode == "audit":
        hooks += audit.hooks(log).items()
    if job.fallback_random:
        wrapt.register_post_import_hook(_fall_back, "torch._inductor.config")
    for module, hook in hooks:
        wrapt.register_post_import_hook(hook, module)


def _fall_back(config: ModuleType) -> None:
    config.fallback_random = True
