"""Committed records of what was measured once, as values and tables for pages. Pure.

Each lies beside the pages, as `NAME.json`, and is part of the site.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measured.values import count, percent, seconds, significant, times

Record = dict[str, Any]

_RULES = {"equal": "bit by bit", "ulp": "1", "float64": "2", "noise": "3", "none": "none"}


def large(value: float | None) -> str:
    """
    >>> large(12.34), large(2.5e7), large(None)
    ('12.3', '2.5e+07', 'no number')
    """
    if value is None:
        return "no number"
    return significant(value) if value < 10_000 else f"{value:.3g}"


Column = tuple[str, Callable[[Mapping[str, Any]], str]]

_PROGRAM: tuple[Column, ...] = (
    ("program", lambda row: row["name"]),
    ("dtype", lambda row: row["dtype"]),
    ("elements", lambda row: count(row["elements"])),
    ("largest ULP", lambda row: large(row["worst_ulp"])),
    ("noise factor it would need", lambda row: large(row["needed"])),
    ("passes by rule", lambda row: _RULES[row["rule"]]),
    ("flagged", lambda row: f"{row['flagged']} of {row['tensors']}"),
)


def _of_place(place: str) -> Column:
    def show(row: Mapping[str, Any]) -> str:
        planted, caught = row[place]
        # On a narrow screen the table scrolls; its cells stay whole.
        return f"{caught}\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}{planted}" if planted else ""

    return place, show


def _known(key: str, show: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda row: "" if row[key] is None else show(row[key])


_COLUMNS: dict[str, tuple[Column, ...]] = {
    "calibration.innocent": _PROGRAM,
    "calibration.bugs": _PROGRAM,
    "calibration.planted": (
        ("dtype", lambda row: row["dtype"]),
        ("size of the numbers", lambda row: f"{row['scale']:g}"),
        ("fault, ULP", lambda row: count(row["units"])),
        ("faulty elements", lambda row: f"{count(row['faults'])} of {count(row['elements'])}"),
        ("found", lambda row: percent(row["caught"])),
        ("fewest in", lambda row: row["operation"]),
    ),
    "mutations.kinds": (
        ("what differs", lambda row: row["kind"]),
        *map(_of_place, ("forward", "backward", "state", "later call")),
    ),
    "costs.programs": (
        ("what a program times", lambda row: row["name"]),
        ("calls", lambda row: count(row["calls"])),
        ("a call, alone", lambda row: seconds(row["alone_seconds"])),
        ("under the audit", lambda row: seconds(row["audited_seconds"])),
        ("ratio", lambda row: times(row["ratio"])),
    ),
    "builds.rows": (
        ("build", lambda row: row["phase"]),
        ("markdown-exec", lambda row: seconds(row["markdown_exec_seconds"])),
        ("a process each", lambda row: seconds(row["subprocess_seconds"])),
        ("this build", lambda row: seconds(row["this_build_seconds"])),
        ("over markdown-exec", lambda row: times(row["over_markdown_exec"])),
        ("over a process each", lambda row: times(row["over_subprocess"])),
    ),
    "builds.site": (
        ("build of the whole site", lambda row: row["phase"]),
        ("snippets run", lambda row: count(row["executed"])),
        ("time", lambda row: seconds(row["seconds"])),
        ("over observed runs", _known("observe_ratio", times)),
        ("beyond observed and audited runs", _known("overhead_seconds", seconds)),
    ),
}

TABLES = tuple(_COLUMNS)
"""Lists of a record that a page may quote as a table, as `record.list`."""

NAMES = tuple(dict.fromkeys(table.partition(".")[0] for table in TABLES))
"""The records there may be."""


def read(folder: Path | None) -> dict[str, Record]:
    """The records that lie in `folder`, by name."""
    paths = {name: folder / file_name(name) for name in NAMES} if folder else {}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.is_file()
    }


def file_name(name: str) -> str:
    return f"{name}.json"


def table(records: Mapping[str, Record], name: str) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one of `TABLES`."""
    columns = _COLUMNS[name]
    of, _, part = name.partition(".")
    rows = [[show(row) for _, show in columns] for row in records.get(of, {}).get(part, ())]
    return [heading for heading, _ in columns], rows
