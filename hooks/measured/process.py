"""Runs one child process within limits, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil

RUN_VARIABLE = "MEASURED_RUN"
"""Marks every process of a run, so that those which left its process group are found too."""

_ALLOWED = {
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "CXX", "CC", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "SYSTEMROOT", "INCLUDE", "LIB", "LIBPATH",
    "VIRTUAL_ENV",
}  # fmt: skip
_ALLOWED_PREFIXES = ("TORCH", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "TRITON_")

_KILL_SECONDS = 5.0
"""What is not dead by then will not die."""


stopping = threading.Event()
"""Set it to end every child of this process, in all threads: each `run` then raises
`Stopped`."""


class Stopped(BaseException):
    """The build is being ended: no result of a child counts any more."""


class Usage(msgspec.Struct, frozen=True):
    """What a child used, with the children that it waited for."""

    cpu_seconds: float = 0.0
    """User and system time."""
    peak_memory_bytes: int = 0
    involuntary_switches: int = 0
    """How often it had to leave a processor."""


class Outcome(msgspec.Struct, frozen=True):
    """How a child went, before anyone reads its events."""

    status: int | None
    """Exit status; negative for a signal; None if the runner ended it."""
    stopped: str
    """Empty, or why the runner ended it: timeout, output limit."""
    output: bytes
    wall_seconds: float
    usage: Usage


def environment(home: Path, extra: dict[str, str]) -> dict[str, str]:
    """What a child sees of the environment: an allow-list, so that no token reaches a snippet."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }
    return {
        **kept,
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "100",
        "MPLBACKEND": "agg",
        **extra,
    }


class Child(Protocol):
    """A process that has been started, with its output on a pipe, as leader of its own group."""

    pid: int
    output: int
    """Descriptor to read from, which belongs to the runner."""

    def has_ended(self) -> bool: ...

    def wait(self) -> tuple[int, Usage]:
        """Exit status, and what it used."""
        ...

    def release(self) -> None:
        """After its end and that of its group: end what only the starter can find."""
        ...


Starter = Callable[[list[str], Path, dict[str, str]], Child]
"""Arguments for Python, working folder and whole environment -> the child."""


def run(
    arguments: list[str],
    *,
    folder: Path,
    env: dict[str, str],
    timeout_seconds: float,
    output_bytes: int,
    starter: Starter | None = None,
) -> Outcome:
    """Run Python with `arguments` in `folder`. Standard output and error share one pipe, so that
    their order is the order of writing. When the child has ended, so has everything it started.

    Raises `Stopped` if the build is being ended."""
    if stopping.is_set():
        raise Stopped
    mark = uuid.uuid4().hex
    start = time.perf_counter()
    child = (starter or Spawned)(arguments, folder, {**env, RUN_VARIABLE: mark})
    try:
        output, stopped = _read(child, start + timeout_seconds, output_bytes)
        if stopped:
            _kill_group(child.pid)
        status, usage = child.wait()
    finally:
        _kill_group(child.pid)
        kill_marked(mark)
        child.release()
        os.close(child.output)
    return Outcome(
        status=None if stopped else status,
        stopped=stopped,
        output=output,
        wall_seconds=time.perf_counter() - start,
        usage=usage,
    )


class Spawned:
    """A new interpreter."""

    def __init__(self, arguments: list[str], folder: Path, env: dict[str, str]) -> None:
        self.output, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        self.pid = self._process.pid

    def has_ended(self) -> bool:
        # Without reaping it, so that the usage is still there to be asked for.
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def wait(self) -> tuple[int, Usage]:
        if not hasattr(os, "wait4") or self._process.returncode is not None:
            return self._process.wait(), Usage()
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode, used = ended(status, usage)
        return self._process.returncode, used

    def release(self) -> None:
        self._process.poll()


def ended(status: int, usage: Any) -> tuple[int, Usage]:
    """What `os.wait4` says, as `Child.wait` does."""
    unit = 1 if sys.platform == "darwin" else 1024
    used = Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, usage.ru_nivcsw)
    return os.waitstatus_to_exitcode(status), used


def _read(child: Child, deadline: float, limit: int) -> tuple[bytes, str]:
    """Read until the child ends, not until the pipe does: a stray grandchild may hold it open."""
    output = bytearray()
    descriptor = child.output
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        open_pipe = True
        while True:
            if stopping.is_set():
                raise Stopped
            if time.perf_counter() > deadline:
                return bytes(output), "timeout"
            has_ended = child.has_ended()
            if open_pipe and selector.select(0 if has_ended else 0.05):
                chunk = _chunk(descriptor)
                open_pipe = chunk != b""
                output += chunk or b""
                if len(output) > limit:
                    return bytes(output[:limit]), "output limit"
                continue
            if has_ended:
                return bytes(output), ""
            if not open_pipe:
                time.sleep(0.02)


def _chunk(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def _kill_group(leader: int) -> None:
    with contextlib.suppress(OSError):  # It has ended.
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)


def kill_marked(mark: str, spared: int | None = None) -> None:
    """End what left the group: whatever was started in the run carries its mark.

    The process `spared` lives on.
    """
    # A process may fork between the look and the kill, and takes a while to die: look again.
    deadline = time.monotonic() + _KILL_SECONDS
    while True:
        found = [
            process
            for process in psutil.process_iter()
            if process.pid != spared and _is_marked(process, mark)
        ]
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not found or time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and (
            process.environ().get(RUN_VARIABLE) == mark
        )
    except (psutil.Error, OSError):
        return False
