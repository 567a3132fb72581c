"""Warms the toolchain once: what Inductor compiles on a new machine before the first kernel.

It tries the vector instruction sets with several small C++ programs, and precompiles torch's
headers. Both cost seconds and belong to the machine, not to a model. Each observed child starts
with a copy of their results and nothing else, unless its fence says fresh="yes".

A snippet that plots starts with matplotlib's list of the machine's fonts, which takes a while to
make, and says so.

Python's own bytecode files are written first, too: a new environment has none, and importing
torch's compiler without them takes several times as long.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measured import machine

# The odd constant keeps this kernel apart from every kernel of a snippet.
PROBE = """
import torch
from torch._inductor import cpu_vec_isa
cpu_vec_isa.pick_vec_isa()
torch.compile(lambda x: x * 0.7853981 + 0.5772157)(torch.ones(17))
"""

BYTECODE = "import torch._inductor.compile_fx"

FONTS = "import matplotlib.font_manager"

_COMPILED = ("fxgraph", "aotautograd", "locks")
"""Subfolders of an Inductor cache that hold compiled graphs, not facts about the machine."""

_HEADERS = (".gch", ".pch")
"""Endings of precompiled headers. Each is above 100 MB: a copy would be written back to the disk
while the child is measured."""

INDUCTOR, TEMPORARY, MATPLOTLIB = "inductor", "tmp", "matplotlib"
"""Subfolders of a child's folder: its Inductor cache; its TMPDIR, in which Inductor keeps the
precompiled headers wherever its cache is; and what matplotlib keeps."""


def warm(folder: Path, run: Callable[[str, Path], bool]) -> Path | None:
    """Folder with a warmed cache and TMPDIR, made on first use by `run(program, folder)`.

    None where the probes fail: then the snippets meet the same trouble, and can say so.
    """
    # A precompiled header is found again only for headers that lie where they lay: of two
    # environments with the same torch, each needs its own.
    spec = importlib.util.find_spec("torch")
    identity = f"{machine.fingerprint(machine.describe())} {spec and spec.origin} {PROBE}"
    warmed = folder / hashlib.sha256(identity.encode()).hexdigest()[:32]
    if warmed.is_dir():
        return warmed
    folder.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder))
    try:
        if not run(PROBE, making):
            return None
        for name in _COMPILED:
            shutil.rmtree(making / INDUCTOR / name, ignore_errors=True)
        try:
            os.rename(making, warmed)
        except OSError:  # Another build was faster.
            if not warmed.is_dir():
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return warmed


@functools.cache
def write_bytecode(folder: Path, run: Callable[[str], bool]) -> None:
    """Import what every snippet imports, once per environment. `run(program)` runs a child.

    A mark in `folder` says that it was done to its end.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return
    source = Path(spec.origin).parent / "_inductor" / "compile_fx.py"
    identity = f"{source} {machine.torch_version()} {sys.version}"
    mark = folder / f"bytecode-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
    # Whoever made the environment anew, in the same place, has no such files.
    written = Path(importlib.util.cache_from_source(str(source)))
    if not (mark.exists() and written.exists()) and run(BYTECODE):
        folder.mkdir(parents=True, exist_ok=True)
        mark.touch()


def prepare(folder: Path, warmed: Path | None) -> None:
    """Make the Inductor cache and TMPDIR of a child anew: copies of the warmed ones, or empty."""
    for name in (INDUCTOR, TEMPORARY):
        shutil.rmtree(folder / name, ignore_errors=True)
        if warmed is None:
            (folder / name).mkdir()
        else:
            shutil.copytree(warmed / name, folder / name, copy_function=_shared_or_copied)


def _shared_or_copied(source: str, target: str) -> None:
    """Copy a file. A precompiled header, which is large and which nobody writes to, is shared."""
    if source.endswith(_HEADERS):
        with contextlib.suppress(OSError):  # Another file system, or one that knows no links.
            os.link(source, target)
            return
    shutil.copy2(source, target)


def list_fonts(folder: Path, kept_in: Path, run: Callable[[str, Path], bool]) -> None:
    """Put matplotlib's list of fonts into a child's folder; made once by `run(program, folder)`."""
    kept = kept_in / f"fonts-{importlib.metadata.version('matplotlib')}"
    if not kept.is_dir():
        kept_in.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept_in) as making:
            if not run(FONTS, Path(making)):
                return
            try:
                os.rename(Path(making) / MATPLOTLIB, kept)
            except OSError:  # Another build was faster.
                if not kept.is_dir():
                    raise
    shutil.copytree(kept, folder / MATPLOTLIB, dirs_exist_ok=True)


def clear(folder: Path) -> None:
    """Take from the TMPDIR of a child what its snippet left there; Inductor's headers stay."""
    (folder / TEMPORARY).mkdir(exist_ok=True)
    for entry in (folder / TEMPORARY).iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if not entry.name.startswith("torchinductor_"):
                shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def environment(folder: Path) -> dict[str, str]:
    """Where a child finds them."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / INDUCTOR),
        "TMPDIR": str(folder / TEMPORARY),
        "MPLCONFIGDIR": str(folder / MATPLOTLIB),
    }
