"""`python -m measured.mutations`: whether the audit finds the faults that `mutants` plants.

Each fault must be found by the right name at the right place, and nothing else with it. The same
program without its fault must agree, so that an audit that flags everything does not pass.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import torch

import mutants
from measured import committed, holders, inside, modes
from measured.record import KINDS, Call
from mutants.fault import PLACES, Fault


def judged(fault: Fault, *, planted: bool) -> list[Call]:
    """What the audit says of the calls of a fault's program."""
    with (
        tempfile.TemporaryDirectory(prefix="measured-") as folder,
        inside.audited(Path(folder) / "events") as calls,
        _as_before(),
    ):
        torch.manual_seed(0)
        fault.run(planted)
        return calls()


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """A fault may leave switches and random streams changed: the next starts without that."""
    streams = holders.streams()
    try:
        with modes.kept(), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        holders.set_streams(streams)


def differences(calls: list[Call]) -> frozenset[str]:
    """Every difference of these calls, as `name at path`."""
    return frozenset(
        f"{found.name} at {found.path}" for call in calls for found in call.differences
    )


@click.command()
@click.option("--only", multiple=True, help="Faults whose name holds one of these texts.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON here.")
def main(only: tuple[str, ...], out: Path | None) -> None:
    """Plant faults in compiled code, and ask the audit. Exits with 1 if it misses one."""
    rows = []
    for fault in mutants.FAULTS:
        if only and not any(text in fault.name for text in only):
            continue
        rows.append(row(fault))
        if not (rows[-1]["caught"] and rows[-1]["agrees"]):
            click.echo(rows[-1])
    record = committed.facts() | {"totals": totals(rows), "kinds": by_kind(rows), "faults": rows}
    click.echo(record["totals"])
    if out:
        committed.write(record, out)
    raise SystemExit(
        record["totals"]["caught"] < len(rows) or record["totals"]["agree"] < len(rows)
    )


def row(fault: Fault) -> dict[str, Any]:
    """What the audit says of one fault, and of its program without the fault."""
    with_fault = judged(fault, planted=True)
    verdicts = {call.verdict for call in judged(fault, planted=False)}
    return {
        "name": fault.name,
        "place": fault.place,
        "expected": sorted(fault.expected),
        "found": sorted(differences(with_fault)),
        "caught": is_caught(fault, with_fault),
        "agrees": verdicts == {"agrees"},
    }


def is_caught(fault: Fault, calls: list[Call]) -> bool:
    """Whether the audit found what is wrong, nothing else, and nothing that it could not judge."""
    verdicts = {call.verdict for call in calls}
    return differences(calls) == fault.expected and verdicts <= {"agrees", "diverges"}


def totals(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many faults there are, how many of them were caught, how many programs agree without."""
    rows = list(rows)
    return {
        "faults": len(rows),
        "caught": sum(row["caught"] for row in rows),
        "agree": sum(row["agrees"] for row in rows),
    }


def by_kind(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per kind of difference and place: faults planted and caught.

    A fault that shows as differences of two kinds counts in both.
    """
    counts: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        for kind in {name.partition(" at ")[0].rpartition("/")[2] for name in row["expected"]}:
            known = counts.setdefault(kind, {place: [0, 0] for place in PLACES})
            known[row["place"]][0] += 1
            known[row["place"]][1] += row["caught"]
    order = sorted(counts, key=KINDS.index)
    return [{"kind": kind, **counts[kind]} for kind in order]


if __name__ == "__main__":
    main()
