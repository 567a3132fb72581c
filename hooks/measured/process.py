"""Runs one child process within limits, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

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


class Outcome(msgspec.Struct, frozen=True):
    """How a child went, before anyone reads its events."""

    status: int | None
    """Exit status; negative for a signal; None if the runner ended it."""
    stopped: str
    """Empty, or why the runner ended it: timeout, output limit."""
    output: bytes
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int


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
        **extra,
    }


def run(
    arguments: list[str],
    *,
    folder: Path,
    env: dict[str, str],
    timeout_seconds: float,
    output_bytes: int,
) -> Outcome:
    """Run Python with `arguments` in `folder`. Standard output and error share one pipe, so that
    their order is the order of writing. When the child has ended, so has everything it started."""
    mark = uuid.uuid4().hex
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**env, RUN_VARIABLE: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, stopped = _read(child, start + timeout_seconds, output_bytes)
        if stopped:
            _kill_group(child)
        status, usage = _wait(child)
    finally:
        _kill_group(child)
        kill_marked(mark)
        if child.stdout:
            child.stdout.close()
    return Outcome(
        status=None if stopped else status,
        stopped=stopped,
        output=output,
        wall_seconds=time.perf_counter() - start,
        cpu_seconds=usage[0],
        peak_memory_bytes=usage[1],
    )


def _read(child: subprocess.Popen[bytes], deadline: float, limit: int) -> tuple[bytes, str]:
    """Read until the child ends, not until the pipe does: a stray grandchild may hold it open."""
    output = bytearray()
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    os.set_blocking(descriptor, False)
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        open_pipe = True
        while True:
            if time.perf_counter() > deadline:
                return bytes(output), "timeout"
            ended = _has_ended(child)
            if open_pipe and selector.select(0 if ended else 0.05):
                chunk = _chunk(descriptor)
                open_pipe = chunk != b""
                output += chunk or b""
                if len(output) > limit:
                    return bytes(output[:limit]), "output limit"
                continue
            if ended:
                return bytes(output), ""
            if not open_pipe:
                time.sleep(0.02)


def _chunk(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    # Without reaping it, so that the usage is still there to be asked for.
    if not hasattr(os, "waitid"):
        return child.poll() is not None
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _wait(child: subprocess.Popen[bytes]) -> tuple[int, tuple[float, int]]:
    """Exit status, and CPU seconds and peak memory in bytes of the child and what it waited for."""
    if not hasattr(os, "wait4") or child.returncode is not None:
        return child.wait(), (0.0, 0)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return child.returncode, (usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    if not hasattr(os, "killpg"):
        child.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):  # It has ended.
        os.killpg(child.pid, signal.SIGKILL)


def kill_marked(mark: str) -> None:
    """End what left the group: whatever was started in the run carries its mark."""
    # A process may fork between the look and the kill; one more look finds the rest.
    for _ in range(5):
        found = [process for process in psutil.process_iter() if _is_marked(process, mark)]
        for process in found:
            try:
                process.kill()
            except psutil.Error:
                continue
        if not found:
            return


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and (
            process.environ().get(RUN_VARIABLE) == mark
        )
    except (psutil.Error, OSError):
        return False
