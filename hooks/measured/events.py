"""What the children tell their parent while they run: one JSON line per event.

Lines, not a report at the end, because a snippet may die at any moment, and because its own
Python subprocesses write to the same file. Appending to a regular file opened with O_APPEND is one
atomic write on the systems we support.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from measured.record import Call, Figure


class Compiled(msgspec.Struct, tag=True, frozen=True):
    """One compile ended. Raw times in microseconds, as Dynamo keeps them."""

    pid: int
    compile_id: str
    function: str
    file: str
    line: int
    graph_ops: int
    backward: bool
    recompile_reason: str | None
    failure: str | None
    failure_reason: str
    failure_file: str
    failure_line: int
    entire_us: int
    backend_us: int
    inductor_us: int
    cpp_us: int
    toolchain_us: int
    cache_hits: int
    cache_misses: int


class Broke(msgspec.Struct, tag=True, frozen=True):
    """Dynamo gave a reason for splitting a graph."""

    file: str
    line: int
    reason: str


class Timed(msgspec.Struct, tag=True, frozen=True):
    """A `torch.utils.benchmark` measurement was made."""

    pid: int
    label: str
    case: str
    side: str
    threads: int
    calls_per_sample: int
    samples_seconds: list[float]


class Drew(msgspec.Struct, tag=True, frozen=True):
    """Inductor compiled a random operation, with its own stream of random numbers."""

    pid: int


class Called(msgspec.Struct, tag=True, frozen=True):
    """A shadowed call was judged; the gradients of an earlier call add a second event."""

    pid: int
    call: Call


class Counted(msgspec.Struct, tag=True, frozen=True):
    """Calls of compiled callables so far in this process; the last such event counts."""

    pid: int
    calls: int


class DiedOfRefusal(msgspec.Struct, tag=True, frozen=True):
    """An exception that compiling raised, and eager did not, was not caught."""

    pid: int


class Bisected(msgspec.Struct, tag=True, frozen=True):
    """torch's bisector came to an end."""

    culprit: str
    """Subsystem, number, pass or operation; or empty."""
    detail: str
    """Why there is no culprit."""


class Drawn(msgspec.Struct, tag=True, frozen=True):
    """A matplotlib figure was left open at the end."""

    figure: Figure


class Finished(msgspec.Struct, tag=True, frozen=True):
    """The snippet reached its last line."""

    values: dict[str, Any]


class Raised(msgspec.Struct, tag=True, frozen=True):
    """The snippet ended with an uncaught exception."""

    exception: str
    message: str


class Exited(msgspec.Struct, tag=True, frozen=True):
    """The snippet raised SystemExit."""

    status: str


Event = (
    Compiled
    | Broke
    | Timed
    | Drew
    | Called
    | Counted
    | DiedOfRefusal
    | Bisected
    | Drawn
    | Finished
    | Raised
    | Exited
)

_encoder = msgspec.json.Encoder(enc_hook=repr)
_decoder = msgspec.json.Decoder(Event)


class Log:
    """Append-only event file, shared by all processes of one child run."""

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)

    def write(self, event: Event) -> None:
        # Opened per event: a descriptor kept open could be closed by the snippet.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, _encoder.encode(event) + b"\n")
        finally:
            os.close(descriptor)


def read(path: str | Path) -> list[Event]:
    """All whole events of a log. A last line cut short by a kill is left out."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    events = []
    for line in data.split(b"\n"):
        try:
            events.append(_decoder.decode(line))
        except msgspec.DecodeError:
            continue
    return events
