"""What a chart shows: from records to numbers, a data table and words. Pure, and draws nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from measured import noise, values
from measured.chart_spec import Spec
from measured.record import PHASES, Compile, RunRecord, Timing, quantile
from measured.snippets import Mistake

MOST_CALLS = 4000
"""Dots that a strip of calls may have: each is drawn twice in the page's HTML."""

_SLOTS = {"eager": 0, "compiled": 1}
"""Sides that look the same in every chart of the site."""

_COUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<unit>.*)")


class Point(msgspec.Struct, frozen=True):
    """A median with its quartiles."""

    low: float
    middle: float
    high: float
    n: int
    """How many samples it is the median of."""
    noisy: bool
    x: float = 0.0
    """Place on the horizontal axis, where the chart has one."""


class Bar(msgspec.Struct, frozen=True):
    side: str
    slot: int
    """Which colour, hatch and marker the side has."""
    point: Point


class Group(msgspec.Struct, frozen=True):
    """Bars of what is compared."""

    name: str
    bars: list[Bar]


class Bars(msgspec.Struct, frozen=True, tag=True):
    groups: list[Group]


class Curve(msgspec.Struct, frozen=True):
    name: str
    slot: int
    points: list[Point]


class Sweep(msgspec.Struct, frozen=True, tag=True):
    x_label: str
    curves: list[Curve]
    is_ratio: bool


class Stack(msgspec.Struct, frozen=True):
    name: str
    seconds: dict[str, float]
    """By phase, in the order of PHASES."""


class Phases(msgspec.Struct, frozen=True, tag=True):
    stacks: list[Stack]


class Calls(msgspec.Struct, frozen=True, tag=True):
    seconds: list[float]


Plot = Bars | Sweep | Phases | Calls


class Column(msgspec.Struct, frozen=True):
    """One column of a data table."""

    name: str
    """In the files."""
    heading: str
    """For readers."""
    filter: str = "text"
    """One of `values.FILTERS`: how readers see its numbers."""


class Source(msgspec.Struct, frozen=True):
    """One of the runs that a chart is drawn from."""

    snippet: str
    cpu: str
    gpu: str | None
    torch: str
    date: str
    """Day of the run, ISO 8601, UTC."""


class Data(msgspec.Struct, frozen=True):
    """All that a chart shows."""

    title: str
    description: str
    """What is on which axis, and the most important numbers, for those who can not see it."""
    columns: list[Column]
    rows: list[list[Any]]
    """Numbers are not rounded; times are in seconds."""
    plot: Plot
    sources: list[Source]
    samples: str
    """How many samples the numbers come from, and in how many threads; empty if this is no
    statistic."""
    noisy: list[str]
    """Why its times are not to be trusted."""
    missing: list[str]
    """Names of snippets that were not run here."""

    @property
    def shown_rows(self) -> list[list[str]]:
        """The rows as readers see them."""
        return [
            [
                values.FILTERS[column.filter](cell) if isinstance(cell, (int, float)) else str(cell)
                for column, cell in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]


def make(spec: Spec, records: Mapping[str, RunRecord]) -> Data | None:
    """What a chart shows; None if none of its snippets was run. Raises `Mistake`.

    `records` maps names of snippets to their records, where there are any.
    """
    found = {name: records[name] for name in spec.snippets if name in records}
    if not found:
        return None
    plot, columns, rows, description = _KINDS[spec.kind](spec, found)
    timings = (
        [t for record in found.values() for t in record.timings]
        if spec.kind in ("bars", "sweep")
        else []
    )
    return Data(
        title=spec.title,
        description=description,
        columns=columns,
        rows=rows,
        plot=plot,
        sources=[_source(name, record) for name, record in found.items()],
        samples=_samples(timings),
        noisy=list(dict.fromkeys(why for r in found.values() for why in noise.reasons(r))),
        missing=[name for name in spec.snippets if name not in records],
    )


def _source(name: str, record: RunRecord) -> Source:
    machine = record.machine
    return Source(name, machine.cpu, machine.gpu, machine.torch, record.date[:10])


def _samples(timings: Sequence[Timing]) -> str:
    if not timings:
        return ""
    parts = []
    for name, numbers in (
        ("n = {}", [t.n for t in timings]),
        ("{} thread{}", [t.threads for t in timings]),
    ):
        low, high = min(numbers), max(numbers)
        parts.append(name.format(low if low == high else f"{low} to {high}", "s" * (high != 1)))
    return ", ".join(parts)


class _Series(msgspec.Struct, frozen=True):
    """Samples of one name, whatever the number of calls in a sample."""

    label: str
    case: str
    side: str
    seconds: list[float]
    noisy: bool


_Made = tuple[Plot, list[Column], list[list[Any]], str]


def _series(records: Mapping[str, RunRecord], kind: str) -> list[_Series]:
    """The timings of records; the number of threads joins the side where there are several."""
    timings = [
        (name, t, t in noise.noisy(record))
        for name, record in records.items()
        for t in record.timings
    ]
    if not timings:
        names = ", ".join(records)
        raise Mistake(
            f"{names} timed nothing with torch.utils.benchmark: a chart of kind {kind} needs that"
        )
    several = len({t.threads for _, t, _ in timings}) > 1
    pooled: dict[tuple[str, str, str], dict[str, list[tuple[Timing, bool]]]] = {}
    for name, timing, disturbed in timings:
        threads = f"{timing.threads} thread{'s' * (timing.threads != 1)}" if several else ""
        side = ", ".join(filter(None, (timing.side, threads)))
        of = pooled.setdefault((timing.label, timing.case, side), {})
        of.setdefault(name, []).append((timing, disturbed))
        if len(of) > 1:
            raise Mistake(f'{" and ".join(of)} both time "{timing.name}"')
    return [
        _Series(*key, [s for t, _ in some for s in t.samples_seconds], any(d for _, d in some))
        for key, of in pooled.items()
        for some in of.values()
    ]


def _point(samples: list[float], noisy: bool, x: float = 0.0) -> Point:
    low, middle, high = (quantile(samples, q) for q in (0.25, 0.5, 0.75))
    return Point(low, middle, high, len(samples), noisy, x)


def _slots(names: Sequence[str]) -> dict[str, int]:
    """A slot for each name, in order of appearance; `_SLOTS` keep theirs."""
    slots: dict[str, int] = {name: _SLOTS[name] for name in names if name in _SLOTS}
    for name in names:
        if name not in slots:
            taken = set(slots.values())
            slots[name] = next(i for i in range(len(names) + len(_SLOTS)) if i not in taken)
    return slots


_STATISTICS = [
    Column("median_seconds", "median", "seconds"),
    Column("first_quartile_seconds", "1st quartile", "seconds"),
    Column("third_quartile_seconds", "3rd quartile", "seconds"),
    Column("samples", "n", "number"),
    Column("noisy", "noisy"),
]


def _cells(point: Point) -> list[Any]:
    return [point.middle, point.low, point.high, point.n, "noisy" if point.noisy else ""]


def _bars(spec: Spec, records: Mapping[str, RunRecord]) -> _Made:
    series = _series(records, spec.kind)
    slots = _slots(list(dict.fromkeys(one.side for one in series)))
    groups: dict[tuple[str, str], list[Bar]] = {}
    for one in series:
        bar = Bar(one.side, slots[one.side], _point(one.seconds, one.noisy))
        groups.setdefault((one.label, one.case), []).append(bar)
    one_label = len({label for label, _ in groups}) == 1
    plot = Bars(
        [
            # What all have in common is no news; a lone group keeps its name.
            Group(case if one_label and case else " ".join(filter(None, (label, case))), bars)
            for (label, case), bars in groups.items()
        ]
    )
    rows = [
        [label, case, bar.side, *_cells(bar.point)]
        for (label, case), bars in groups.items()
        for bar in bars
    ]
    told = "; ".join(
        f"{' '.join(filter(None, (group.name, bar.side)))}: {values.seconds(bar.point.middle)}"
        for group in plot.groups
        for bar in group.bars
    )
    columns = [Column("label", "what"), Column("case", "case"), Column("side", "side")]
    description = (
        f"Bar chart of the time per call: median, with a line from first to third quartile. {told}."
    )
    return plot, [*columns, *_STATISTICS], rows, description


def _sweep(spec: Spec, records: Mapping[str, RunRecord]) -> _Made:
    series = _series(records, spec.kind)
    one_label = len({one.label for one in series}) == 1
    units: dict[str, None] = {}
    lines: dict[tuple[str, str], dict[float, _Series]] = {}
    for one in series:
        x, unit = _number_of(one)
        units.setdefault(unit)
        line = lines.setdefault((one.label, one.side), {})
        if x in line:
            raise Mistake(f'a sweep has two cases at {x:g}: "{line[x].case}" and "{one.case}"')
        line[x] = one
    if spec.y == "ratio":
        points = _ratios(lines)
    else:
        points = {
            (label, side): [_point(at.seconds, at.noisy, x) for x, at in sorted(line.items())]
            for (label, side), line in lines.items()
        }
    names = {key: key[1] if one_label and key[1] else " ".join(filter(None, key)) for key in points}
    # A ratio looks like the side that it tells of.
    sides = list(dict.fromkeys(side.rpartition(" / ")[2] for _, side in points))
    slots = _slots(sides) if one_label else _slots(list(names.values()))
    curves = [
        Curve(names[key], slots[key[1].rpartition(" / ")[2] if one_label else names[key]], some)
        for key, some in points.items()
    ]
    if all(len(curve.points) < 2 for curve in curves):
        raise Mistake("a sweep needs timings of at least two cases")
    is_ratio = spec.y == "ratio"
    x_label = " / ".join(filter(None, units)) or "case"
    is_counted = all(point.x == int(point.x) for curve in curves for point in curve.points)
    x_filter = "count" if is_counted else "number"
    columns = [Column("series", "series"), Column("x", x_label, x_filter), *_STATISTICS]
    if is_ratio:
        columns = [_as_ratio(column) for column in columns]
    rows = [
        [curve.name, _whole(point.x), *_cells(point)] for curve in curves for point in curve.points
    ]
    show = values.times if is_ratio else values.seconds
    told = "; ".join(
        f"{curve.name}: {show(curve.points[0].middle)} at {_plain(curve.points[0].x)}, "
        f"{show(curve.points[-1].middle)} at {_plain(curve.points[-1].x)}"
        for curve in curves
    )
    what = "how many times as long it takes" if is_ratio else "the time per call"
    description = (
        f"Line chart of {what}, by {x_label}: median, with a band from first to third quartile. "
        f"{told}."
    )
    return Sweep(x_label, curves, is_ratio), columns, rows, description


def _as_ratio(column: Column) -> Column:
    if column.filter != "seconds":
        return column
    return Column(column.name.replace("seconds", "ratio"), column.heading, "times")


def _number_of(one: _Series) -> tuple[float, str]:
    match = _COUNT.match(one.case.strip())
    if match is None:
        raise Mistake(
            f'a sweep needs a number at the start of each case (sub_label), as in "65536 floats"; '
            f'{one.label} has "{one.case}"'
        )
    return float(re.sub("[_,]", "", match["number"])), match["unit"].strip()


def _ratios(
    lines: dict[tuple[str, str], dict[float, _Series]],
) -> dict[tuple[str, str], list[Point]]:
    """Eager's time over each other side's, round by round: the i-th samples of both are a pair."""
    made: dict[tuple[str, str], list[Point]] = {}
    for label in dict.fromkeys(label for label, _ in lines):
        sides = {side: line for (of, side), line in lines.items() if of == label}
        base = "eager" if "eager" in sides else next(iter(sides))
        for side, line in sides.items():
            if side == base:
                continue
            points = []
            for x, one in sorted(line.items()):
                if x not in sides[base]:
                    raise Mistake(f"a ratio needs both sides at {x:g}; {base} was not timed there")
                other = sides[base][x]
                if len(one.seconds) != len(other.seconds):
                    raise Mistake(
                        f"a ratio pairs the samples of {base} and {side}; at {x:g} there are "
                        f"{len(other.seconds)} and {len(one.seconds)}"
                    )
                pairs = zip(other.seconds, one.seconds, strict=True)
                noisy = one.noisy or other.noisy
                points.append(_point([above / below for above, below in pairs], noisy, x))
            made[label, f"{base} / {side}"] = points
    if not made:
        raise Mistake(
            "a ratio needs timings of two sides (description), such as eager and compiled"
        )
    return made


def _whole(x: float) -> float | int:
    return int(x) if x == int(x) else x


def _plain(x: float) -> str:
    return f"{_whole(x):,}"


def _phases(spec: Spec, records: Mapping[str, RunRecord]) -> _Made:
    stacks: list[Stack] = []
    for name, record in records.items():
        if not record.books.compiles:
            raise Mistake(f"{name} compiled nothing: there are no phases to show")
        if spec.per == "graph":
            prefix = f"{name} " if len(records) > 1 else ""
            stacks += [
                Stack(prefix + _compile_name(c), _by_phase([c])) for c in record.books.compiles
            ]
            continue
        cold = " cold" if record.warm else ""
        stacks.append(Stack(name + cold, _by_phase(record.books.compiles)))
        if record.warm:
            stacks.append(Stack(f"{name} warm", _by_phase(record.warm.compiles)))
    columns = [
        Column("compile" if spec.per == "graph" else "snippet", "what"),
        Column("total_seconds", "all", "seconds"),
        *(Column(f"{phase}_seconds", label, "seconds") for phase, label in PHASES.items()),
    ]
    rows = [[s.name, sum(s.seconds.values()), *s.seconds.values()] for s in stacks]
    told = "; ".join(
        f"{stack.name}: "
        + ", ".join(
            f"{PHASES[phase]} {values.seconds(seconds)}"
            for phase, seconds in stack.seconds.items()
            if seconds
        )
        for stack in stacks
    )
    return Phases(stacks), columns, rows, f"Stacked bars of compile time by phase. {told}."


def _compile_name(one: Compile) -> str:
    direction = " backward" if one.backward else ""
    return f"{one.function} {one.compile_id}{direction}".strip()


def _by_phase(compiles: Sequence[Compile]) -> dict[str, float]:
    return {phase: sum(getattr(one, f"{phase}_seconds") for one in compiles) for phase in PHASES}


def _calls(spec: Spec, records: Mapping[str, RunRecord]) -> _Made:
    (reference,) = spec.of
    try:
        _, seconds = values.look_up(reference, {name: r.values for name, r in records.items()})
    except Mistake as mistake:
        raise Mistake(f"{reference}: {mistake}") from None
    if not isinstance(seconds, list) or not seconds:
        raise Mistake(f"{reference} is no list of seconds, one for each call")
    for number, value in enumerate(seconds, 1):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise Mistake(f"{reference}: call {number} took {value!r}, which is no time in seconds")
    if len(seconds) > MOST_CALLS:
        raise Mistake(f"{reference}: {len(seconds)} calls; a chart shows {MOST_CALLS} at most")
    median, slowest = quantile(seconds, 0.5), max(seconds)
    description = (
        f"A dot for the time of each of {len(seconds)} calls, on a logarithmic axis. First call "
        f"{values.seconds(seconds[0])}, median {values.seconds(median)}, slowest "
        f"{values.seconds(slowest)} (call {seconds.index(slowest) + 1})."
    )
    columns = [Column("call", "call", "count"), Column("seconds", "time", "seconds")]
    rows = [[number, value] for number, value in enumerate(seconds, 1)]
    return Calls([float(value) for value in seconds]), columns, rows, description


_KINDS = {"bars": _bars, "sweep": _sweep, "phases": _phases, "calls": _calls}


def as_csv(data: Data) -> str:
    """The data table, numbers as they were measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in data.columns])
    writer.writerows(data.rows)
    return out.getvalue()


def as_json(data: Data) -> str:
    """The data table with title, description and where it was measured."""
    names = [column.name for column in data.columns]
    made = {
        "title": data.title,
        "description": data.description,
        "sources": [msgspec.structs.asdict(source) for source in data.sources],
        "noisy": data.noisy,
        "not_run_here": data.missing,
        "rows": [dict(zip(names, row, strict=True)) for row in data.rows],
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
