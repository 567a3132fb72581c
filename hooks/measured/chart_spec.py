"""What the body of a chart's fence asks for. Pure: TOML in, a `Spec` or `Mistake` out."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec

from measured.snippets import Mistake


class Spec(msgspec.Struct, frozen=True):
    """One chart, as its author asks for it."""

    kind: str
    """One of KINDS."""
    of: tuple[str, ...]
    """Names of snippets; for calls one reference, `part/name.value`."""
    title: str
    y: str = "time"
    """For sweep: time, or ratio."""
    per: str = "snippet"
    """For phases: a bar per snippet, or per graph."""

    @property
    def slug(self) -> str:
        """The title as a part of a file's name.

        >>> Spec("bars", (), "GELU, by size (n = 16)").slug
        'gelu-by-size-n-16'
        """
        return re.sub(r"[\W_]+", "-", self.title.lower()).strip("-") or "chart"

    @property
    def snippets(self) -> tuple[str, ...]:
        """Names of the snippets whose records it is drawn from."""
        return (
            tuple(name.partition(".")[0] for name in self.of) if self.kind == "calls" else self.of
        )


KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "bars": {},
    "sweep": {"y": ("time", "ratio")},
    "phases": {"per": ("snippet", "graph")},
    "calls": {},
}
"""Kinds of charts -> their own keys and what these may be."""

_COMMON = ("kind", "of", "title")


def parse(text: str) -> Spec:
    """Read the body of a fence. Raises `Mistake`."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"a chart's fence holds TOML, and this is none: {error}") from None
    kind = _text(given, "kind")
    if kind not in KINDS:
        raise Mistake(f'unknown kind "{kind}" of chart; known: {", ".join(KINDS)}')
    choices = KINDS[kind]
    for name in given:
        if name not in (*_COMMON, *choices):
            known = ", ".join((*_COMMON, *choices))
            raise Mistake(f'unknown key "{name}" for a chart of kind {kind}; known: {known}')
    own = {}
    for name, allowed in choices.items():
        if name in given:
            own[name] = _text(given, name)
            if own[name] not in allowed:
                expected = " or ".join(f'"{choice}"' for choice in allowed)
                raise Mistake(f'{name} = "{own[name]}": expected {expected}')
    return Spec(kind, _of(kind, given.get("of")), _text(given, "title"), **own)


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Mistake(f'a chart needs {name} = "...", a text')
    return " ".join(value.split())


def _of(kind: str, value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) and kind != "calls" else [value]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        what = 'one "part/name.value"' if kind == "calls" else 'a snippet\'s "part/name", or a list'
        raise Mistake(f"of: a chart of kind {kind} is drawn from {what}")
    if len(set(names)) < len(names):
        raise Mistake("of: a snippet is named twice")
    return tuple(names)
