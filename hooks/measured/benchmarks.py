"""Knows when a benchmark of `timeit` or `torch.utils.benchmark` is under way. Imports no torch."""

from __future__ import annotations

import functools
import itertools
import threading
from types import ModuleType
from typing import Any


class _Thread(threading.local):
    loop = 0


_thread = _Thread()
_loops = itertools.count(1)


def timed_loop() -> int:
    """Number of the timed loop that this thread is inside of; 0 where it is in none."""
    return _thread.loop


def notice(timeit: ModuleType) -> None:
    """Take notice of timed loops from now on; torch's timer runs them by `timeit` too."""
    run = timeit.Timer.timeit

    @functools.wraps(run)
    def timed(*args: Any, **kwargs: Any) -> Any:
        before, _thread.loop = _thread.loop, next(_loops)
        try:
            return run(*args, **kwargs)
        finally:
            _thread.loop = before

    timeit.Timer.timeit = timed
