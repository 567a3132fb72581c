"""Describes this machine without importing torch."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
from pathlib import Path

import msgspec
import psutil

from measured.record import Machine

_ISA = (
    ("amx_tile", "AMX"),
    ("avx512f", "AVX-512"),
    ("avx2", "AVX2"),
    ("sve", "SVE"),
    ("asimd", "NEON"),
)

COMPILER_HELP = (
    "a snippet must run, and Inductor needs a C++ compiler: "
    "Debian/Ubuntu `apt-get install g++`, macOS `xcode-select --install`, "
    "Windows: Visual Studio Build Tools with the C++ workload"
)
TORCH_HELP = "a snippet must run, and torch is not installed: run `uv sync`"


@functools.cache
def describe() -> Machine:
    """This machine, its compiler, and the torch that a snippet would import."""
    gpu = _first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    compiler = cpp_compiler()
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=_cores(),
        isa=_isa(),
        memory_bytes=psutil.virtual_memory().total,
        gpu=gpu,
        python=platform.python_version(),
        torch=torch_version() or "not installed",
        compiler=(compiler and _first_line(compiler, "--version")) or compiler or "none",
    )


def fingerprint(machine: Machine) -> str:
    """Hash of everything about a machine that a result may depend on."""
    return hashlib.sha256(msgspec.json.encode(machine)).hexdigest()


def torch_version() -> str | None:
    """Version of the installed torch, or None. Reads the package's metadata only.

    Local version labels tell builds apart (`2.15.0+cu132`), and metadata may lack them.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    version_file = Path(spec.origin).with_name("version.py")
    namespace: dict[str, object] = {}
    try:
        exec(version_file.read_text(encoding="utf-8"), namespace)
        return str(namespace["__version__"])
    except Exception:  # An unusual build of torch: its package metadata must do.
        return importlib.metadata.version("torch")


def cpp_compiler() -> str | None:
    """The C++ compiler that Inductor would use, or None."""
    named = os.environ.get("CXX")
    candidates = [named] if named else ["g++", "clang++", "cl"]
    return next((name for name in candidates if shutil.which(name)), None)


def missing() -> str | None:
    """What keeps this machine from running a snippet, as one line, or None."""
    if torch_version() is None:
        return TORCH_HELP
    if cpp_compiler() is None:
        return COMPILER_HELP
    return None


def has_cuda() -> bool:
    return describe().gpu is not None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_name() -> str:
    for line in _cpuinfo():
        if line.lower().startswith("model name"):
            return line.split(":", 1)[1].strip()
    return (
        _first_line("sysctl", "-n", "machdep.cpu.brand_string")
        or platform.processor()
        or platform.machine()
    )


def _isa() -> str:
    for line in _cpuinfo():
        if line.startswith(("flags", "Features")):
            flags = set(line.split(":", 1)[1].split())
            return next((name for flag, name in _ISA if flag in flags), "baseline")
    return "unknown"


@functools.cache
def _cpuinfo() -> tuple[str, ...]:
    path = Path("/proc/cpuinfo")
    return tuple(path.read_text().splitlines()) if path.exists() else ()


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (result.stdout or result.stderr).strip().splitlines()
    return lines[0].strip() if result.returncode == 0 and lines else None
