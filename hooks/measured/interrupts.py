"""Ctrl-C and SIGTERM while snippets run: one exception, once, and no process is left behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import psutil

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP.


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Within, the first of these signals is a `KeyboardInterrupt`; later ones are ignored.

    A second Ctrl-C must not interrupt the ending of the children that the first one began. Only
    the main thread can be interrupted; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}

    def once(number: int, frame: object) -> None:
        for name in before:
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt

    for name in _NAMES:
        if number := getattr(signal, name, None):
            before[number] = signal.signal(number, once)
    try:
        yield
    except KeyboardInterrupt:
        # The signal may have come between the start of a child and the `try` that ends it.
        _end_children()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_children() -> None:
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()
