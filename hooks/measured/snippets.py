"""A snippet and what its fence declares. Pure: text in, typed values or `Mistake` out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from measured.record import KINDS, SCHEMA, is_name


class Mistake(Exception):
    """Something an author wrote that can not be right; the message is for the author."""


class Place(msgspec.Struct, frozen=True, order=True):
    """Where in the pages something stands."""

    page: str
    """Path of the page below the docs folder."""
    line: int

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


BY_DESIGN = "by-design"
"""The `upstream` of a difference that torch means to keep."""


class Expectations(msgspec.Struct, frozen=True):
    """What a fence declares. None: nothing is declared."""

    graphs: int | None = None
    breaks: int | None = None
    recompiles: int | None = None
    diverges: tuple[str, ...] | None = None
    """Names of the differences (`record.Difference.name`) that the audit must find, all of them
    and no other; `rng` alone leaves the random streams of Inductor as they are."""
    upstream: str | None = None
    """Where that difference is known: `pytorch#117265`, or BY_DESIGN."""
    raises: str | None = None
    """Qualified name of the exception that ends the snippet."""
    timeout: float | None = None
    """Limit on each of its processes, seconds."""
    needs: str | None = None
    """Device without which the snippet is not run: cuda."""
    fresh: bool = False
    """Start with an empty Inductor cache: not even the toolchain probes are done."""
    warm: bool = False
    """Observe it once more, in a new process that finds the disk cache of the first."""

    @property
    def issue_url(self) -> str | None:
        """Address of the issue that `upstream` names; None where it names none."""
        issue = _ISSUE.fullmatch(self.upstream or "")
        return f"https://github.com/pytorch/pytorch/issues/{issue['number']}" if issue else None


class Snippet(msgspec.Struct, frozen=True):
    """One executed fence."""

    name: str
    """`part/name` of the file it includes; `page#n` for code written in the fence."""
    source: str
    place: Place
    expects: Expectations
    shown: dict[str, str]
    """Options that only change how the source is shown."""


SEED_VARIABLE = "MEASURED_SEED"
"""A whole number that is added to every seed of every snippet, for a build with other inputs."""

_SHOWN = ("title", "hl_lines", "linenums")
_INCLUDE = re.compile(r"""-+8<-+\s+["'](?P<path>[^"']+)["']""")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*")
_ISSUE = re.compile(r"pytorch#(?P<number>[1-9]\d*)")


def _count(value: str) -> int:
    if not re.fullmatch(r"\d+", value):
        raise ValueError("a whole number")
    return int(value)


def _limit(value: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", value) or float(value) <= 0:
        raise ValueError("a number of seconds")
    return float(value)


def _exception(value: str) -> str:
    if not _EXCEPTION.fullmatch(value):
        raise ValueError("the qualified name of an exception")
    return value


def _differences(value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(value.split()))
    if not names or not all(map(is_name, names)):
        kinds = ", ".join(KINDS)
        raise ValueError(
            f"names of differences, each perhaps after grad/, argument/ or state/: {kinds}"
        )
    if "rng" in names and len(names) > 1:
        raise ValueError('"rng" alone: where the random numbers differ, so may everything else')
    return names


def _upstream(value: str) -> str:
    if value != BY_DESIGN and not _ISSUE.fullmatch(value):
        raise ValueError(f'"pytorch#" and the number of an issue, or "{BY_DESIGN}"')
    return value


def _one_of(**choices: Any) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        if value not in choices:
            raise ValueError(" or ".join(f'"{choice}"' for choice in choices))
        return choices[value]

    return parse


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "graphs": _count,
    "breaks": _count,
    "recompiles": _count,
    "diverges": _differences,
    "upstream": _upstream,
    "raises": _exception,
    "timeout": _limit,
    "needs": _one_of(cuda="cuda"),
    "fresh": _one_of(yes=True, no=False),
    "warm": _one_of(yes=True, no=False),
}


def expectations(options: Mapping[str, str]) -> tuple[Expectations, dict[str, str]]:
    """Split a fence's options into what it declares and how it is shown.

    Raises `Mistake` on an unknown option or a mistyped value.
    """
    declared: dict[str, Any] = {}
    shown: dict[str, str] = {}
    for name, value in options.items():
        if name == "exec":
            if value != "on":
                raise Mistake(f'exec="{value}": the only value is "on"')
        elif name in _SHOWN:
            shown[name] = value
        elif name in _OPTIONS:
            try:
                declared[name] = _OPTIONS[name](value)
            except ValueError as error:
                raise Mistake(f'{name}="{value}": expected {error}') from None
        else:
            known = ", ".join((*_OPTIONS, *_SHOWN))
            raise Mistake(f'unknown option {name}="{value}"; known: {known}')
    if ("diverges" in declared) != ("upstream" in declared):
        raise Mistake(
            'diverges="..." and upstream="..." stand together: what differs, and where it is known'
        )
    return Expectations(**declared), shown


def resolve(body: str, folder: Path, fallback_name: str) -> tuple[str, str]:
    """Name and source of a fence's body: an included file, or the code itself.

    A snippet is a complete program, so an executed fence holds one include and nothing else, or
    no include at all.
    """
    body = body.strip("\n")
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    includes = [match for line in lines if (match := _INCLUDE.fullmatch(line))]
    if not includes:
        if any("8<--" in line for line in lines):
            raise Mistake('an include must look like --8<-- "part/name.py"')
        if not lines:
            raise Mistake("the fence is empty")
        return fallback_name, body
    if len(lines) != 1:
        raise Mistake("an executed fence holds one include and nothing else")
    path = includes[0]["path"]
    file = folder / path
    if not path.endswith(".py") or not file.resolve().is_relative_to(folder.resolve()):
        raise Mistake(f'"{path}" is not a .py file below {folder.name}/')
    if not file.is_file():
        raise Mistake(f'"{path}" does not exist below {folder.name}/')
    return path.removesuffix(".py"), file.read_text(encoding="utf-8").rstrip("\n")


def content_key(
    snippet: Snippet, *, machine: str, engine: str, environment: Mapping[str, str]
) -> str:
    """Hash of all that a run depends on: equal keys mean that nothing new would be seen.

    `graphs`, `breaks`, `recompiles` and `raises` are judged against a record and do not change it,
    nor does `diverges`, unless the random streams are what diverges.
    """
    expects = snippet.expects
    torch_environment = sorted(
        (name, value)
        for name, value in environment.items()
        if name.startswith("TORCH") or name == SEED_VARIABLE
    )
    parts = [
        SCHEMA,
        snippet.name,
        snippet.source,
        (expects.timeout, expects.needs, expects.fresh, expects.warm),
        "rng" in (expects.diverges or ()),
        machine,
        engine,
        torch_environment,
    ]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
