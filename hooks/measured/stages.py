"""The compiler in stages: each backend below runs one part of it more than the one before.

A difference that appears with a backend, and with none before it, arises in the part that this
backend adds. Nothing here imports torch: the parent names stages, the child puts them in.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

STAGES = {
    "eager": "Dynamo (capture of the graph)",
    "aot_eager": "AOTAutograd (functionalisation, backward graph)",
    "aot_eager_decomp_partition": "decompositions, or the partitioner",
    "inductor": "Inductor (graph passes, lowerings, generated code)",
}
"""Backend -> what it adds to the one before."""

OWN = "own"
"""In place of a stage: a backend of the program's, which has no stages known here."""

BISECTED = ("aot_eager_decomp_partition", "inductor")
"""Stages of which torch's bisector can switch single parts off."""


def of_backend(backend: Any) -> str:
    """The last stage that a backend of `torch.compile` runs, or OWN.

    `backend` is what Dynamo is given: a name, a function, or one of torch.compile's wrappers.
    """
    if isinstance(backend, str):
        return backend if backend in STAGES else OWN
    function = getattr(backend, "compiler_fn", backend)
    module = getattr(function, "__module__", None) or type(function).__module__
    name = name_of(backend)
    if module.partition(".")[0] != "torch":
        return OWN  # A function of the program's may have the name of one of torch's.
    return {"compile_fx": "inductor"}.get(name, name if name in STAGES else OWN)


def name_of(backend: Any) -> str:
    """What to call a backend."""
    if isinstance(backend, str):
        return backend
    for attribute in ("compiler_name", "__name__"):
        if isinstance(name := getattr(backend, attribute, None), str):
            return name
    return type(backend).__name__


def stop_after(eval_frame: ModuleType, stage: str) -> None:
    """Give Dynamo the backend `stage` in place of every one that runs later stages as well."""
    get_compiler_fn = eval_frame.get_compiler_fn
    order = list(STAGES)

    @functools.wraps(get_compiler_fn)
    def get_earlier(backend: Any) -> Any:
        last = of_backend(backend)
        if last in STAGES and order.index(last) > order.index(stage):
            backend = stage
        return get_compiler_fn(backend)

    eval_frame.get_compiler_fn = get_earlier
