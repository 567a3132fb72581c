"""Runs the snippet inside a child process, and says how it ended: `python -m measured.program`."""

from __future__ import annotations

import builtins
import ctypes
import math
import os
import signal
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import msgspec
import wrapt

from measured import events
from measured.child import Job


def limit(job: Job) -> None:
    """Apply the limits of a job to this process and those that it starts."""
    try:
        import resource
    except ImportError:  # Windows has no rlimits; the time and output limits hold there too.
        return
    for name, value in (
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", job.file_bytes),
        ("RLIMIT_DATA", job.memory_bytes),
    ):
        if hasattr(resource, name):
            resource.setrlimit(getattr(resource, name), (value, value))


def die_with(starter: int) -> None:
    """Have the kernel end this process with the one that started it, were that killed itself."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # From <sys/prctl.h>.
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != starter:  # It was killed before.
            os._exit(1)


def plain_values(namespace: dict[str, Any]) -> dict[str, Any]:
    """The module-level values that prose may quote: plain ones, and lists or dicts of them.

    >>> plain_values({"n": 3, "_hidden": 1, "sizes": [1, 2], "f": len})
    {'n': 3, 'sizes': [1, 2]}
    """
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and _is_plain(value)
    }


def _is_plain(value: Any, depth: int = 0) -> bool:
    if depth > 20:  # Deeper than a page could quote, or a cycle.
        return False
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return value.isprintable() or value.isascii()
    if type(value) in (int, bool):
        return True
    if type(value) in (list, tuple):
        return all(_is_plain(item, depth + 1) for item in value)
    if type(value) is dict:
        return all(type(k) in (str, int) and _is_plain(v, depth + 1) for k, v in value.items())
    return False


def _print_traceback(error: BaseException) -> None:
    """As the interpreter prints it, without the frames of the engine, here and in its causes."""
    here = os.path.dirname(os.path.abspath(__file__))
    report = traceback.TracebackException.from_exception(error)
    pending: list[traceback.TracebackException | None] = [report]
    while pending:
        part = pending.pop()
        if part is not None:
            part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith(here)]
            pending += [part.__cause__, part.__context__]
    print("".join(report.format()), end="", file=sys.stderr)


def execute(script: str, arguments: list[str]) -> dict[str, Any]:
    """Run a program in this process as `python script.py` would. Returns its namespace.

    The module stays `__main__` afterwards: worker processes and pickles look it up there.
    """
    source = Path(script).read_bytes()
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    exec(compile(source, script, "exec", dont_inherit=True), main.__dict__)
    return main.__dict__


def run(job: Job) -> int:
    """Run the snippet as `python snippet.py` would. Returns the exit status."""
    log = events.Log(job.events)
    limit(job)
    die_with(job.starter)
    wrapt.register_post_import_hook(_pass_show, "matplotlib.pyplot")
    try:
        namespace = execute(job.script, job.arguments)
    except SystemExit as error:
        log.write(events.Exited(str(error.code)))
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        _print_traceback(error)
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
        log.write(events.Raised(module + kind.__qualname__, str(error)[:2000]))
        return 1
    log.write(events.Finished(plain_values(namespace)))
    if job.mode == "observe" and "matplotlib.pyplot" in sys.modules:
        from measured import figures

        for figure in figures.drawn():
            log.write(events.Drawn(figure))
    return 0


def _pass_show(pyplot: types.ModuleType) -> None:
    """Let `show()` pass in silence: the figure is captured instead."""
    warnings.filterwarnings("ignore", message="FigureCanvas.* is non-interactive")


if __name__ == "__main__":
    sys.exit(run(msgspec.json.decode(Path(os.environ["MEASURED_JOB"]).read_bytes(), type=Job)))
