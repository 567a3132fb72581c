"""Writes records that are committed beside the pages; `evidence` reads them."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

from measured import machine

_ROW = re.compile(r"\{[^{}]*\}")
"""One object of a JSON text that holds no other."""


def facts() -> dict[str, str]:
    """What was measured here and today depends on."""
    here = machine.describe()
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {"date": today, "torch": here.torch, "python": here.python, "cpu": here.cpu}


def write(record: dict[str, Any], out: Path) -> None:
    """Write a record as JSON."""
    # One row a line: a later record shows as what it changed.
    text = _ROW.sub(lambda row: " ".join(row[0].split()), json.dumps(record, indent=1))
    out.write_text(text + "\n", encoding="utf-8")
