"""Whether a call is being traced by this thread, and so is none that the program makes."""

from __future__ import annotations

import torch
from torch._guards import CompileContext, TracingContext


def is_tracing() -> bool:
    """Whether this thread compiles or exports."""
    if not torch.compiler.is_compiling():
        return False
    # That flag is one for all threads: another may compile while this one runs.
    return (
        torch.compiler.is_exporting()
        or CompileContext.try_get() is not None
        or TracingContext.try_get() is not None
    )
