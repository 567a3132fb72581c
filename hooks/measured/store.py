"""Records by content key, in the user's cache directory, so that clones and builds share them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
import platformdirs

from measured import record
from measured.record import RunRecord

# What a record shows depends on the code that observed and judged it.
_ENGINE = (
    "again", "ahead", "artefacts", "audit", "auditor", "benchmarks", "books", "boot/sitecustomize",
    "child", "children", "compare", "comparisons", "constants", "dispatch", "due", "events",
    "figures", "formulas", "gradients", "holders", "locate", "marks", "masking", "measure", "modes",
    "noise", "observe", "process", "program", "reach", "record", "reference", "refusals",
    "reproducer", "resampling", "run", "shadow", "sight", "snapshot", "stages", "templating",
    "toolchain", "tracing", "twin", "undefined", "warm",
)  # fmt: skip


def cache_folder() -> Path:
    """Where records and the warm toolchain live.

    MEASURED_CACHE overrides the user cache directory.
    """
    named = os.environ.get("MEASURED_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("torch-compile-measured"))


def engine_version() -> str:
    """Hash of the source files that decide what a record contains."""
    digest = hashlib.sha256()
    for name in _ENGINE:
        digest.update(Path(__file__).parent.joinpath(f"{name}.py").read_bytes())
    return digest.hexdigest()


class Store:
    """Records of this machine. A damaged record is a miss, never an error and never a page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str) -> RunRecord | None:
        try:
            found = record.decode(self._path(key).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.key == key else None

    def save(self, made: RunRecord) -> None:
        """Atomic: readers see the old record or the new one, and a kill leaves no half."""
        path = self._path(made.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, record.encode(made))

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the file in one step, on disk before it has its name."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
