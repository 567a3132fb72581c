"""How long each snippet took when it last ran, so that a build can tell how long it will take."""

from __future__ import annotations

from pathlib import Path

import msgspec

from measured import store


def read(cache: Path) -> dict[str, float]:
    """Name of a snippet -> seconds of its last finished run. A damaged file knows nothing."""
    try:
        return msgspec.json.decode(_path(cache).read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}


def note(cache: Path, name: str, seconds: float) -> None:
    """Remember one run. Of two builds at once the later wins: it is no more than an estimate."""
    cache.mkdir(parents=True, exist_ok=True)
    known = read(cache) | {name: round(seconds, 3)}
    store.write_atomically(_path(cache), msgspec.json.encode(known, order="sorted"))


def _path(cache: Path) -> Path:
    return cache / "durations.json"
