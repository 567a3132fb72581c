"""What the calibration of the parity rule found, as values and tables for pages. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from measured.values import count, percent, significant

FILE = "calibration.json"
"""Name of the record, which lies beside the pages and is part of the site."""

_RULES = {"equal": "bit by bit", "ulp": "1", "float64": "2", "noise": "3", "none": "none"}


def read(folder: Path | None) -> dict[str, Any]:
    """The record below `folder`; nothing where there is none."""
    path = folder / FILE if folder else None
    return json.loads(path.read_text(encoding="utf-8")) if path and path.is_file() else {}


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
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "innocent": _PROGRAM,
    "bugs": _PROGRAM,
    "planted": (
        ("dtype", lambda row: row["dtype"]),
        ("size of the numbers", lambda row: f"{row['scale']:g}"),
        ("fault, ULP", lambda row: count(row["units"])),
        ("faulty elements", lambda row: f"{count(row['faults'])} of {count(row['elements'])}"),
        ("found", lambda row: percent(row["caught"])),
        ("fewest in", lambda row: row["operation"]),
    ),
}

TABLES = tuple(_COLUMNS)
"""Lists of the record that a page may quote as a table."""


def table(record: Mapping[str, Any], name: str) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one of `TABLES`."""
    columns = _COLUMNS[name]
    rows = [[show(row) for _, show in columns] for row in record.get(name, ())]
    return [heading for heading, _ in columns], rows
