"""Captures the figures that a snippet left open, inside its process, after its last line.

Imported only where the snippet imported pyplot itself.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from typing import Any

import matplotlib
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer

from measured import record

SVG_BYTES = 2 << 20
"""A larger drawing is not kept: a page holds it whole."""

LINE_POINTS = 5000
"""A line of more points is drawn, and has no data table."""

_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "measured"}


def drawn() -> Iterator[record.Figure]:
    """Every open figure, in the order of their numbers. Prints nothing, whatever happens."""
    pyplot = sys.modules["matplotlib.pyplot"]
    for number in pyplot.get_fignums():
        with _silence():
            made = _capture(pyplot.figure(number))
        yield made


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def _capture(figure: Any) -> record.Figure:
    try:
        svg, note = _svg(figure), ""
    except Exception as error:  # Such as a title that is no mathtext.
        svg, note = "", f"matplotlib could not draw it: {type(error).__name__}: {error}"
    if len(svg) > SVG_BYTES:
        svg, note = "", f"the drawing has {len(svg) / 2**20:.1f} MiB and was not kept"
    lines = [line for axes in figure.axes for line in _lines(axes, len(figure.axes) > 1)]
    for line in lines:
        if len(line.y) > LINE_POINTS:
            note = f"{note}; " * bool(note) + f"{line.label or 'a line'} has {len(line.y)} points"
    return record.Figure(
        svg=svg,
        title=_first([figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]),
        x_label=_first(axes.get_xlabel() for axes in figure.axes),
        y_label=_first(axes.get_ylabel() for axes in figure.axes),
        lines=[line for line in lines if 0 < len(line.y) <= LINE_POINTS],
        note=note,
    )


def _svg(figure: Any) -> str:
    out = io.StringIO()
    names = ("Date", "Creator", "Format", "Type")
    with matplotlib.rc_context(_SETTINGS):
        figure.savefig(
            out,
            format="svg",
            transparent=True,
            bbox_inches="tight",
            metadata=dict.fromkeys(names),
        )
    svg = out.getvalue()
    ET.fromstring(svg)  # A title may hold what XML can not.
    return svg


def _first(texts: Iterable[str]) -> str:
    return next((" ".join(text.split()) for text in texts if text.strip()), "")


def _lines(axes: Any, named: bool) -> Iterator[record.Line]:
    title = axes.get_title() if named else ""
    for line in axes.get_lines():
        # A line across the axes has no data; the caps of error bars are no line of their own.
        if line.get_transform() == axes.transData and line.get_label() != "_nolegend_":
            yield _line(title, line, line.get_xdata(orig=False), line.get_ydata(orig=False), axes)
    for dots in axes.collections:
        if isinstance(dots, PathCollection):
            offsets = dots.get_offsets()
            yield _line(title, dots, offsets[:, 0], offsets[:, 1], axes)
    for bars in axes.containers:
        if not isinstance(bars, BarContainer):
            continue
        if bars.orientation == "horizontal":
            places = [bar.get_y() + bar.get_height() / 2 for bar in bars]
            yield _line(title, bars, places, [bar.get_width() for bar in bars], axes, "y")
        else:
            places = [bar.get_x() + bar.get_width() / 2 for bar in bars]
            yield _line(title, bars, places, [bar.get_height() for bar in bars], axes)


def _line(title: str, artist: Any, xs: Any, ys: Any, axes: Any, along: str = "x") -> record.Line:
    label = artist.get_label() or ""
    label = "" if label.startswith("_") else label
    axis = axes.xaxis if along == "x" else axes.yaxis
    points = [
        (_place(float(x), axis), float(y))
        for x, y in zip(xs, ys, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    return record.Line(
        ": ".join(filter(None, (title, label))), [x for x, _ in points], [y for _, y in points]
    )


def _place(x: float, axis: Any) -> float | str:
    """What stands at a place of an axis: the name of a category, or the number."""
    formatter = axis.get_major_formatter()
    if type(formatter).__name__ in ("StrCategoryFormatter", "FixedFormatter"):
        places = [float(place) for place in axis.get_majorticklocs()]
        if x in places and (name := formatter.format_ticks(places)[places.index(x)]):
            return name
    return x
