"""`python -m measured.versus`: what this build costs beside a plain one, in one run.

The same programs are built into pages by the stock plugin in the build's process, by the stock
plugin with a process for each program, and by this build; in turns, so that a busy moment hits all.
Nothing else may run.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from measured import children, committed, contenders, record, toolchain
from measured.contenders import CONTENDERS, THIS_BUILD, Contender
from measured.record import RunRecord
from measured.run import measurement_lock

ROOT = Path(__file__).parents[2]

SNIPPETS = (
    "differences/strides",
    "start/first_call",
    "start/count_the_graphs",
    "one_line/shapes",
    "parity_rule/allclose",
)
"""Some of the site's, from most of its parts. The first is edited: one that is observed once."""

PHASES = ("cold", "warm", "one edit")
"""All caches empty; nothing changed since; one program changed since."""

_NOT_SOURCE = {".git", ".venv", ".pytest_cache", ".ruff_cache", "site"}
"""What lies in a checkout and is no part of the project."""


class Built(msgspec.Struct, frozen=True):
    """One build that passed."""

    seconds: float
    """Wall time, the start of Python and MkDocs included."""
    executed: int
    """Programs that this build ran; 0 where the builder does not tell."""
    made: list[RunRecord]
    """Their records."""


def row(phase: str, samples: Mapping[str, list[float]]) -> dict[str, Any]:
    """What a record says of a phase. `samples`: seconds of each build, by the contender's key.
    Ratios are of medians, this build's over another's."""
    medians = {key: statistics.median(taken) for key, taken in samples.items()}
    ours = medians.pop(THIS_BUILD.key)
    return {
        "phase": phase,
        **{f"{key}_seconds": median for key, median in medians.items()},
        f"{THIS_BUILD.key}_seconds": ours,
        **{f"over_{key}": ours / median for key, median in medians.items()},
        **{f"{key}_samples": taken for key, taken in samples.items()},
    }


def account(phase: str, built: Built) -> dict[str, Any]:
    """Where the time of a build of this project's went.

    Observing a program again because it was disturbed is left out of ratio and overhead. What that
    took is not recorded; it is taken to be as long as the run that was kept. The ratio is None
    where nothing ran, the overhead where several did: then audits ran beside each other.
    """
    observed = sum(made.observed.wall_seconds for made in built.made)
    audited = sum(made.audit.process.wall_seconds for made in built.made if made.audit)
    alone = len(built.made) <= 1
    again = sum((made.attempts - 1) * made.observed.wall_seconds for made in built.made)
    return {
        "phase": phase,
        "seconds": built.seconds,
        "executed": built.executed,
        "observed_seconds": observed,
        "audited_seconds": audited,
        "again_seconds": again,
        "observe_ratio": (built.seconds - again) / observed if observed else None,
        "overhead_seconds": built.seconds - again - observed - audited if alone else None,
    }


def build(site: Path, seen: set[str], *flags: str) -> Built:
    """Build a site with caches of its own. Keys of its records join `seen`; a record with a new
    one was made now.

    Raises `click.ClickException` where the build fails.
    """
    environment = contenders.environment(site)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *flags],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise click.ClickException(f"{site.name} could not be built:\n{done.stderr[-4000:]}")
    report = site / "site" / "report.json"
    if not report.is_file():
        return Built(seconds, 0, [])
    kept = [record.decode(path.read_bytes()) for path in (site / "site/records").rglob("*.json")]
    made = [each for each in kept if each.key not in seen]
    seen |= {each.key for each in made}
    return Built(seconds, json.loads(report.read_text(encoding="utf-8"))["executed_now"], made)


def phases(site: Path, edited: str, *flags: str) -> Iterator[Built]:
    """Build a site that has never been built: each of `PHASES`, when asked for the next."""
    seen: set[str] = set()
    yield build(site, seen, *flags)
    yield build(site, seen, *flags)
    contenders.edit(site, edited)
    yield build(site, seen, *flags)


def turns(project: Path, names: Sequence[str], folder: Path) -> dict[str, list[Built]]:
    """One round, in `folder`: each phase with each contender. The first program is edited."""
    running = {}
    for contender in CONTENDERS:
        site = folder / contender.key
        contenders.make(contender, project, names, site)
        # The stock plugin only warns where a program fails.
        running[contender.key] = phases(site, names[0], "--strict")
    built: dict[str, list[Built]] = {key: [] for key in running}
    for _ in PHASES:
        for key, builds in running.items():
            built[key].append(next(builds))
    return built


def compared(rounds: Sequence[Mapping[str, list[Built]]]) -> dict[str, Any]:
    """What a record says of these rounds."""
    rows = [
        row(phase, {c.key: [made[c.key][index].seconds for made in rounds] for c in CONTENDERS})
        for index, phase in enumerate(PHASES)
    ]
    accounts = [
        {"round": number, **account(phase, built)}
        for number, made in enumerate(rounds, 1)
        for phase, built in zip(PHASES, made[THIS_BUILD.key], strict=True)
    ]
    cold = [each["observe_ratio"] for each in accounts if each["phase"] == PHASES[0]]
    return {
        "rounds": len(rounds),
        "contenders": [
            {"name": c.name, "checked": c.checked, "isolated": c.isolated} for c in CONTENDERS
        ],
        "rows": rows,
        "observe_ratio": statistics.median(cold),
        "accounts": accounts,
    }


def of_site(project: Path, edited: str, folder: Path) -> list[dict[str, Any]]:
    """Accounts of a whole project, built from nothing, again, and with one program edited.

    A copy in `folder` is built: the edit is not the author's.
    """
    copy = folder / "project"

    def left_out(of: str, names: list[str]) -> set[str]:
        return _NOT_SOURCE & set(names) if Path(of) == project else set()

    shutil.copytree(project, copy, ignore=left_out)
    facts = committed.facts()
    return [
        {**account(phase, built), "date": facts["date"], "torch": facts["torch"]}
        for phase, built in zip(PHASES, phases(copy, edited), strict=True)
    ]


def _toolchain_seconds(folder: Path) -> float:
    """How long this build takes to warm the toolchain, which it does once per machine."""
    start = time.perf_counter()
    if toolchain.warm(folder, children.probe) is None:
        raise click.ClickException("the toolchain can not be warmed")
    return time.perf_counter() - start


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _described(contender: Contender) -> str:
    return (
        f"{contender.name}: checked against eager: {_yes(contender.checked)}; "
        f"isolated: {_yes(contender.isolated)}"
    )


def shown(made: Mapping[str, Any]) -> Iterable[str]:
    """The record of a comparison, in lines."""
    yield from map(_described, CONTENDERS)
    others = [contender for contender in CONTENDERS if contender is not THIS_BUILD]
    for each in made["rows"]:
        times = ", ".join(f"{c.name} {each[f'{c.key}_seconds']:.1f} s" for c in CONTENDERS)
        ratios = ", ".join(f"{each[f'over_{c.key}']:.2f} times {c.name}" for c in others)
        yield f"{each['phase']}: {times}; this build is {ratios}"
    warming = made["toolchain_seconds"]
    share = warming / made["rows"][0][f"{THIS_BUILD.key}_seconds"]
    yield (
        f"this build's cold time includes warming the toolchain, timed apart at {warming:.1f} s "
        f"({share:.0%}); the others meet the same work in their first program that needs it"
    )
    yield f"cold, this build over its observed runs: {made['observe_ratio']:.2f}"


def shown_site(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """The accounts of a site, in lines."""
    for each in rows:
        ratio, overhead = each["observe_ratio"], each["overhead_seconds"]
        over = "" if ratio is None else f", {ratio:.2f} times the observed runs"
        beyond = "" if overhead is None else f", {overhead:.1f} s beyond observed and audited runs"
        programs = f"{each['executed']} programs run"
        yield f"{each['phase']}: {each['seconds']:.1f} s, {programs}{over}{beyond}"


def _read(out: Path | None) -> dict[str, Any]:
    return json.loads(out.read_text(encoding="utf-8")) if out and out.is_file() else {}


@click.command()
@click.option("--snippets", multiple=True, help="part/name; some of the site's, unless given.")
@click.option("--rounds", default=3, show_default=True, help="How often each phase is built.")
@click.option("--site", is_flag=True, help="Build this project's whole site instead, once.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON here.")
def main(snippets: tuple[str, ...], rounds: int, site: bool, out: Path | None) -> None:
    """Time builds of the same pages: plain markdown-exec, a process for each snippet, this build.
    The first snippet is the one that is edited.
    """
    names = snippets or SNIPPETS
    for name in names:
        if not contenders.program(ROOT, name).is_file():
            raise click.ClickException(f"there is no {contenders.program(Path(), name)}")
    kept = _read(out)
    with tempfile.TemporaryDirectory(prefix="measured-") as temporary, measurement_lock():
        folder = Path(temporary)
        # Whoever is the first to import torch on a machine waits for its bytecode to be written.
        subprocess.run([sys.executable, "-c", toolchain.BYTECODE], check=True)
        if site:
            rows = of_site(ROOT, names[0], folder)
            made = kept | {"site": rows}
            lines = shown_site(rows)
        else:
            made = _comparison(names, rounds, folder) | {"site": kept.get("site", [])}
            lines = shown(made)
    for line in lines:
        click.echo(line)
    if out:
        committed.write(made, out)


def _comparison(names: Sequence[str], rounds: int, folder: Path) -> dict[str, Any]:
    taken, warming = [], []
    for number in range(rounds):
        place = folder / str(number)
        taken.append(turns(ROOT, names, place))
        warming.append(_toolchain_seconds(place / "toolchain"))
        shutil.rmtree(place)  # A round leaves hundreds of megabytes of precompiled headers.
    facts = {"snippets": list(names), "snippet_count": len(names), "edited": names[0]}
    warmed = {"toolchain_seconds": statistics.median(warming), "toolchain_samples": warming}
    return committed.facts() | facts | warmed | compared(taken)


if __name__ == "__main__":
    main()
