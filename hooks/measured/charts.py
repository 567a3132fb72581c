"""Draws what `chart_data` made of the records, with matplotlib, as SVG that stands in a page.

Every chart is drawn twice, wide and narrow, because text that shrinks with a page can not be read.
Colours are drawn as placeholders, in whose place CSS variables stand in the end. The same data
gives the same bytes; what was drawn once is kept.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from measured import store, svg, values
from measured.chart_data import Bars, Calls, Data, Phases, Sweep
from measured.record import PHASES, quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOG_SPAN = 20.0
"""An axis is logarithmic where its largest number is this many times its smallest."""

INK, MUTED, GRID, GROUND = "#010101", "#020202", "#030303", "#040404"
SERIES = [f"#0501{slot:02x}" for slot in range(1, 7)]
PHASE = {phase: f"#0601{index:02x}" for index, phase in enumerate(PHASES)}
COLOURS = {
    INK: "var(--chart-ink)",
    MUTED: "var(--chart-muted)",
    GRID: "var(--chart-grid)",
    GROUND: "var(--chart-ground)",
    **{colour: f"var(--chart-{slot})" for slot, colour in enumerate(SERIES, 1)},
    **{colour: f"var(--phase-{phase.partition('_')[0]})" for phase, colour in PHASE.items()},
}
"""Placeholders -> what stands in the page."""

_DASHES = ["--", "-", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1))]
_MARKERS = ["s", "o", "^", "D", "v", "P"]
_HATCHES = ["///", "", "...", "xxx", "---", "|||"]
"""By slot, as colours are: sides can be told apart without any."""

_PHASE_HATCHES = dict(zip(PHASES, ("", "///", "..", "xx", "||"), strict=True))

_ROW = 22.0
"""Height of a bar with its distance to the next, and of a line above it, in pixels."""


class Layout(msgspec.Struct, frozen=True):
    """Lengths are in pixels, in which the SVG is shown."""

    name: str
    width: int
    font: float
    plot_height: int
    """Height of a chart that has no rows."""


LAYOUTS = (Layout("wide", 680, 13.0, 320), Layout("narrow", 320, 12.0, 270))


class Drawing(msgspec.Struct, frozen=True):
    """A chart as SVG, in each of the layouts."""

    wide: str
    narrow: str


def drawing(data: Data, prefix: str, folder: Path) -> Drawing:
    """The drawing of a chart whose ids start with `prefix`; kept below `folder`."""
    path = folder / f"{_key(data, prefix)}.json"
    if kept := _load(path):
        return kept
    made = Drawing(*(_draw(data, layout, f"{prefix}-{layout.name}") for layout in LAYOUTS))
    content = msgspec.json.encode(made)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(content).hexdigest().encode()
    store.write_atomically(path, digest + b"\n" + content)
    return made


def _key(data: Data, prefix: str) -> str:
    here = Path(__file__).parent
    sources = [here.joinpath(f"{name}.py").read_text("utf-8") for name in ("charts", "svg")]
    # Of matplotlib's package, not of the module: nothing is imported where nothing is drawn.
    version = importlib.metadata.version("matplotlib")
    return hashlib.sha256(msgspec.json.encode([data, prefix, version, sources])).hexdigest()


def _load(path: Path) -> Drawing | None:
    """None if it is not there, or damaged."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if digest != hashlib.sha256(content).hexdigest().encode():
        return None
    return msgspec.json.decode(content, type=Drawing)


def _draw(data: Data, layout: Layout, prefix: str) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # Whatever the machine's own settings are.
        matplotlib.rcParams.update(_settings(layout))
        figure = Figure(dpi=72, layout="constrained")
        figure.get_layout_engine().set(w_pad=2 / 72, h_pad=2 / 72)
        axes = figure.add_subplot()
        height = _DRAWERS[type(data.plot)](figure, axes, data.plot, layout)
        figure.set_size_inches(layout.width / 72, height / 72)
        out = io.StringIO()
        names = ("Date", "Creator", "Format", "Type")
        figure.savefig(out, format="svg", metadata=dict.fromkeys(names))
    return svg.inline(
        out.getvalue(),
        prefix=prefix,
        title=data.title,
        description=data.description,
        colours=COLOURS,
        css_class=f"chart-{layout.name}",
    )


def _settings(layout: Layout) -> dict[str, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "measured",
        "font.size": layout.font,
        "axes.titlesize": layout.font,
        "axes.labelsize": layout.font,
        "xtick.labelsize": layout.font - 1,
        "ytick.labelsize": layout.font - 1,
        "legend.fontsize": layout.font,
        "text.color": INK,
        "axes.titlecolor": MUTED,
        "axes.labelcolor": MUTED,
        "axes.edgecolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.spines.left": False,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlepad": 8.0,
        "axes.linewidth": 1.0,
        "xtick.major.width": 1.0,
        "ytick.major.size": 0.0,
        "ytick.minor.size": 0.0,
        "grid.color": GRID,
        "grid.linewidth": 1.0,
        "axes.axisbelow": True,
        "hatch.linewidth": 1.0,
        "legend.frameon": False,
    }


def _draw_bars(figure: Figure, axes: Axes, plot: Bars, layout: Layout) -> float:
    rows = _Rows(axes, layout)
    longest = max(bar.point.high for group in plot.groups for bar in group.bars)
    for group in plot.groups:
        rows.heading(group.name)
        for bar in group.bars:
            slot, point = bar.slot % len(SERIES), bar.point
            at = rows.row(bar.side)
            axes.barh(
                at,
                point.middle,
                height=0.7,
                color=SERIES[slot],
                edgecolor=GROUND,
                hatch=_HATCHES[slot],
                linewidth=0,
            )
            for colour, width, cap in ((GROUND, 4.0, 6.0), (INK, 1.4, 4.5)):
                ends = [point.low, point.high]
                axes.plot(ends, [at, at], color=colour, linewidth=width, solid_capstyle="butt")
                axes.plot(
                    ends, [at, at], "|", color=colour, markersize=2 * cap, markeredgewidth=width
                )
            mark = " (noisy)" if point.noisy else ""
            rows.value(at, max(point.middle, point.high), values.seconds(point.middle) + mark)
    return rows.finish(longest)


def _draw_phases(figure: Figure, axes: Axes, plot: Phases, layout: Layout) -> float:
    rows = _Rows(axes, layout)
    for stack in plot.stacks:
        rows.heading(stack.name)
        at, left = rows.row(""), 0.0
        for phase, seconds in stack.seconds.items():
            axes.barh(at, seconds, left=left, height=0.8, **_phase_look(phase))
            left += seconds
        rows.value(at, left, values.seconds(left))
    from matplotlib.patches import Patch

    shown = [name for name in PHASES if any(stack.seconds[name] for stack in plot.stacks)]
    handles = [Patch(label=PHASES[name], **_phase_look(name)) for name in shown]
    legend_height = _legend(figure, handles, layout)
    return legend_height + rows.finish(max(sum(s.seconds.values()) for s in plot.stacks))


def _phase_look(phase: str) -> dict[str, Any]:
    return {
        "facecolor": PHASE[phase],
        "edgecolor": GROUND,
        "hatch": _PHASE_HATCHES[phase],
        "linewidth": 1.0,
    }


class _Rows:
    """Horizontal bars from top to bottom, with a line of text above some."""

    def __init__(self, axes: Axes, layout: Layout) -> None:
        self._axes, self._layout = axes, layout
        self._at = 0.0
        self._ticks: dict[float, str] = {}
        self._texts: list[str] = []

    def heading(self, text: str) -> None:
        if text:
            self._at += 0.25 if self._at else 0.0
            self._axes.annotate(
                text, (0, self._at), xytext=(5, -1), textcoords="offset points", va="center"
            )
            self._at += 0.95

    def row(self, label: str) -> float:
        at = self._at
        self._ticks[at] = label
        self._at += 1
        return at

    def value(self, at: float, right: float, text: str) -> None:
        """Write a number at the end of a bar."""
        self._texts.append(text)
        self._axes.annotate(
            text, (right, at), xytext=(7, 0), textcoords="offset points", va="center"
        )

    def finish(self, longest: float) -> float:
        """Returns the height of the figure."""
        axes, font = self._axes, self._layout.font
        axes.set_yticks(list(self._ticks), list(self._ticks.values()), color=INK, size=font)
        axes.set_xticks([])
        axes.set_ylim(self._at - 0.35, -0.6)
        axes.spines[["left", "bottom"]].set_visible(False)
        names = max(len(label) for label in self._ticks.values())
        inside = self._layout.width - _width(names, font) - 10
        # The numbers stand beyond the bars, within the axes.
        room = _width(max(map(len, self._texts)), font) + 12
        axes.set_xlim(0, longest / max(1 - room / inside, 0.3) or 1.0)
        axes.axvline(0, color=MUTED, linewidth=1.0)
        return (self._at + 0.25) * _ROW + 6


def _width(characters: int, font: float) -> float:
    """About how wide a text is in DejaVu Sans, which is wider than what a browser takes."""
    return 0.62 * font * characters


def _legend(figure: Figure, handles: list[Any], layout: Layout) -> float:
    """A legend above the axes, in as many lines as it takes. Returns its height."""
    handle, gap = 2.2 * layout.font, 1.4 * layout.font
    columns = len(handles)
    while columns > 1:
        widest = [
            max(_width(len(h.get_label()), layout.font) for h in handles[column::columns])
            for column in range(columns)
        ]
        if sum(widest) + columns * (handle + gap) <= layout.width:
            break
        columns -= 1
    lines = -(-len(handles) // columns)
    # Filled by columns, as matplotlib does it, the order would run down.
    ordered = [one for column in range(columns) for one in handles[column::columns]]
    figure.legend(
        handles=ordered,
        loc="outside upper left",
        ncols=columns,
        borderaxespad=0.0,
        borderpad=0.1,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.3,
    )
    return lines * 1.5 * layout.font + 6


def _draw_sweep(figure: Figure, axes: Axes, plot: Sweep, layout: Layout) -> float:
    from matplotlib.lines import Line2D

    handles = []
    for curve in plot.curves:
        slot = curve.slot % len(SERIES)
        xs = [point.x for point in curve.points]
        look: dict[str, Any] = {
            "color": SERIES[slot],
            "linestyle": _DASHES[slot],
            "marker": _MARKERS[slot],
            "linewidth": 2.0,
            "markersize": 6.0,
            "markeredgecolor": GROUND,
            "markeredgewidth": 1.0,
        }
        axes.fill_between(
            xs,
            [point.low for point in curve.points],
            [point.high for point in curve.points],
            color=SERIES[slot],
            alpha=0.22,
            linewidth=0,
        )
        axes.plot(xs, [point.middle for point in curve.points], **look)
        handles.append(Line2D([], [], label=curve.name, **look))
    points = [point for curve in plot.curves for point in curve.points]
    _sweep_x(axes, sorted({point.x for point in points}), plot.x_label, layout)
    show = _times_tick if plot.is_ratio else _seconds_tick
    _scale_y(axes, [p.low for p in points] + [p.high for p in points], show)
    if plot.is_ratio:
        axes.axhline(1, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1.5)
    names = [curve.name for curve in plot.curves]
    if plot.is_ratio and len(names) == 1:  # There is nothing to tell apart.
        axes.set_title(names[0])
        return layout.plot_height
    axes.set_title("how many times as long" if plot.is_ratio else "time per call")
    return layout.plot_height + (_legend(figure, handles, layout) if any(names) else 0)


def _sweep_x(axes: Axes, xs: list[float], label: str, layout: Layout) -> None:
    if xs[0] > 0 and xs[-1] / xs[0] > LOG_SPAN:
        axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.minorticks_off()
    low, high = axes.get_xlim()
    transform = axes.transScale.transform
    left, right = (transform((x, 1.0))[0] for x in (low, high))

    def pixels(x: float) -> float:
        return (transform((x, 1.0))[0] - left) / (right - left) * (layout.width - 70)

    # The last one stays, and before it every one that has room.
    kept = [xs[-1]]
    for x in reversed(xs[:-1]):
        room = _width(len(f"{x:,.6g}") + len(f"{kept[-1]:,.6g}"), layout.font - 1) / 2 + 8
        if pixels(kept[-1]) - pixels(x) >= room:
            kept.append(x)
    axes.set_xticks(kept, [_number_tick(x) for x in kept])


def _scale_y(axes: Axes, ys: list[float], show: Callable[[float, Any], str]) -> None:
    """Choose the vertical axis: logarithmic where numbers are far apart, else from 0."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    low, high = min(ys), max(ys)
    if low > 0 and high / low > LOG_SPAN:
        axes.set_yscale("log")
        subs = (1.0,) if high / low > 500 else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    else:
        axes.set_ylim(0, high * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(show))
    axes.minorticks_off()
    axes.grid(axis="y")


def _draw_calls(figure: Figure, axes: Axes, plot: Calls, layout: Layout) -> float:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    seconds, n = plot.seconds, len(plot.seconds)
    axes.set_yscale("log")
    few = max(seconds) / min(seconds) <= 50
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(_seconds_tick))
    round_numbers = MaxNLocator(5, integer=True).tick_values(0, n)
    ticks = [1, *(int(tick) for tick in round_numbers if 1 < tick <= n)]
    axes.set_xticks(ticks, [_number_tick(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y")
    size = 7.0 if n <= 50 else 5.0 if n <= 500 else 3.0
    axes.plot(
        range(1, n + 1),
        seconds,
        "o",
        color=SERIES[1],
        markersize=size,
        markeredgewidth=0,
        alpha=0.8,
    )
    median = quantile(seconds, 0.5)
    axes.axhline(median, color=INK, linewidth=1.0, linestyle=(0, (2, 2)), zorder=1.5)
    slowest = max(seconds)
    number = seconds.index(slowest) + 1
    margin = max(0.02 * n, 0.5)
    axes.set_xlim(1 - margin, n + margin)
    # Room above for the words, which no dot may hide.
    low, high = min(seconds), slowest
    axes.set_ylim(low / (high / low) ** 0.06 / 1.05, high * (high / low) ** 0.1 * 1.05)
    if slowest > 3 * median:
        is_left = number <= n / 2
        axes.annotate(
            f"call {_number_tick(number)}: {values.seconds(slowest)}",
            (number, slowest),
            xytext=(8 if is_left else -8, 0),
            textcoords="offset points",
            ha="left" if is_left else "right",
            va="center",
        )
    axes.set_title(f"time per call; dashed: the median, {values.seconds(median)}")
    axes.set_xlabel("call")
    return layout.plot_height


def _seconds_tick(seconds: float, _: Any = None) -> str:
    """A round duration.

    >>> _seconds_tick(2e-5), _seconds_tick(0.5), _seconds_tick(0)
    ('20 µs', '500 ms', '0')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size * 0.9995:
            return f"{seconds / size:,.4g} {unit}"
    return "0" if abs(seconds) < 1e-12 else f"{seconds / 1e-9:.3g} ns"


def _times_tick(times: float, _: Any = None) -> str:
    return f"{times:,.4g}×"


def _number_tick(number: float, _: Any = None) -> str:
    """A number on a horizontal axis.

    >>> _number_tick(1048576), _number_tick(0.5)
    ('1,048,576', '0.5')
    """
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


_DRAWERS: dict[type, Callable[[Figure, Axes, Any, Layout], float]] = {
    Bars: _draw_bars,
    Sweep: _draw_sweep,
    Phases: _draw_phases,
    Calls: _draw_calls,
}
