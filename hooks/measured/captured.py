"""How a figure that a snippet drew stands in its page. Pure."""

from __future__ import annotations

import msgspec
from markupsafe import Markup

from measured import svg, values
from measured.record import Figure, Line

_COLOURS = {
    "#000000": "currentColor",
    "#ffffff": "var(--chart-ground)",
    "#b0b0b0": "var(--chart-grid)",
    "#cccccc": "var(--chart-grid)",
    # The first six of matplotlib's cycle, each as a hue that can be read on both grounds.
    "#1f77b4": "var(--chart-c0)",
    "#ff7f0e": "var(--chart-c1)",
    "#2ca02c": "var(--chart-c2)",
    "#d62728": "var(--chart-c3)",
    "#9467bd": "var(--chart-c4)",
    "#8c564b": "var(--chart-c5)",
}
"""What matplotlib draws unless it is told otherwise -> what follows the page."""


class Shown(msgspec.Struct, frozen=True):
    """A captured figure, ready for a page."""

    title: str
    svg: Markup | None
    """None where the drawing was not kept."""
    note: str
    headings: list[str]
    rows: list[list[str]]


def shown(figure: Figure, prefix: str) -> Shown:
    """A figure whose ids start with `prefix`."""
    title = figure.title or figure.y_label or "Figure"
    drawing = None
    if figure.svg:
        drawing = Markup(
            svg.inline(
                figure.svg,
                prefix=prefix,
                title=title,
                description=_description(figure),
                colours=_COLOURS,
                in_points=True,
            )
        )
    named = any(line.label for line in figure.lines)
    headings = [figure.x_label or "x", figure.y_label or "y"]
    return Shown(
        title=title,
        svg=drawing,
        note=figure.note,
        headings=["series", *headings] if named else headings,
        rows=[
            [*([line.label] if named else []), _number(x), _number(y)]
            for line in figure.lines
            for x, y in zip(line.x, line.y, strict=True)
        ],
    )


def _description(figure: Figure) -> str:
    axes = ""
    if figure.x_label or figure.y_label:
        axes = f"{figure.y_label or 'y'} by {figure.x_label or 'x'}. "
    return f"{axes}{'; '.join(map(_range, figure.lines))}".strip() or "A figure without data."


def _range(line: Line) -> str:
    count = f"{len(line.y)} point{'s' * (len(line.y) != 1)}"
    told = f"{count}, from {_number(min(line.y))} to {_number(max(line.y))}"
    return f"{line.label}: {told}" if line.label else told


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return values.significant(value, 4) if abs(value) >= 1e-4 else f"{value:.3e}"
