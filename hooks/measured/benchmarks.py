"""Knows when a benchmark of `timeit` or `torch.utils.benchmark` is under way. Imports no torch."""

from __future__ import annotations

import functools
import threading
from types import ModuleType
from typing import Any


class _Thread(threading.local):
    timing = False


_thread = _Thread()


def is_timing() -> bool:
    """Whether this thread is inside a timed loop."""
    return _thread.timing


def notice(timeit: ModuleType) -> None:
    """Take notice of timed loops from now on; torch's timer runs them by `timeit` too."""
    run = timeit.Timer.timeit

    @functools.wraps(run)
    def timed(*args: Any, **kwargs: Any) -> Any:
        before, _thread.timing = _thread.timing, True
        try:
            return run(*args, **kwargs)
        finally:
            _thread.timing = before

    timeit.Timer.timeit = timed
