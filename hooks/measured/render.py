"""Draws what a record holds: the block of a fence, its receipt, a chart, a value in prose."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import markdown
import markdown_exec
from markupsafe import Markup

from measured import (
    captured,
    chart_data,
    charts,
    claims,
    constants,
    evidence,
    noise,
    templating,
    values,
)
from measured.build import NOT_RUN, RUNNING, Build
from measured.claims import Claim
from measured.comparisons import Comparison, comparisons
from measured.pages import CHART, LANGUAGES, ChartUse, Values
from measured.record import PHASES, Call, RunRecord
from measured.report import DECLARED, differences, file_name, judge, verdict
from measured.snippets import Place, Snippet

_RULES = {
    "equal": "equal bit by bit",
    "ulp": f"within the {constants.ULP_LIMIT} ULP that always pass",
    "float64": "allowed by a float64 run of eager",
    "noise": "allowed by eager's own rounding noise",
}
"""What the weakest rule that a snippet needed says to a reader."""

_SHORT = 12
"""Characters up to which a value is not broken over two lines."""

_MOST_ROWS = 60
"""Rows of a data table that a page shows; the files have all."""

_FILES = {"csv": chart_data.as_csv, "json": chart_data.as_json}

_templates = templating.environment(autoescape=True)
_templates.filters.update(values.FILTERS)


class Renderer:
    """Answers markdown-exec and the values extension for the page that is being drawn."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._page = ""
        self._url = ""
        self.rendered: list[str] = []
        self.urls: dict[str, str] = {}
        """Where each page will stand below the site's root."""

    def enter(self, page: str, url: str) -> None:
        """`page` is drawn from now on, at `url` below the site's root."""
        self._page, self._url = page, url
        self.rendered.append(page)

    def install(self) -> None:
        """Let markdown-exec's own fences for Python show our results instead of executing."""
        for language in LANGUAGES:
            markdown_exec.formatters[language] = self.block

    def block(self, *, code: str, md: markdown.Markdown, **options: Any) -> Markup:
        """An executed fence: source, output, figures, receipt."""
        snippet = self._build.take(self._page, code)
        record = self._build.record(snippet) if snippet else None
        output = record.observed.output.rstrip("\n") if record else ""
        # Options of the fence are ours: what is left in `extra` would show in the source block.
        options["extra"] = dict(snippet.shown) if snippet else {}
        options["source"] = "above"
        options["result"] = ("ansi" if "\x1b[" in output else "text") if output else ""
        html = _drawn(code, output, md, options)
        if snippet is None:
            return html
        if record is None and snippet.name in self._build.waiting:
            return self._waiting(snippet, html)
        return self._safely(snippet.place, lambda: self._receipt(snippet, record, html))

    def _safely(self, place: Place, draw: Callable[[], Markup]) -> Markup:
        """Draw a block; an exception fails the build. Superfences would swallow it, and show the
        fence."""
        try:
            return draw()
        except Exception as error:
            self._build.not_drawn(place, error)
            return Markup("")

    def _waiting(self, snippet: Snippet, block: Markup) -> Markup:
        """The block of a snippet that runs, or will: source, and when its result may come."""
        template = _templates.get_template("waiting.html")
        before = self._build.waiting[snippet.name]
        return Markup(template.render(block=block, anchor=_anchor(snippet), before=before))

    def mistakes(self, page: str) -> str:
        """Markdown to show in place of a page that can not be drawn; empty if it can."""
        template = _templates.get_template("mistakes.html")
        mistakes = self._build.mistakes(page)
        return template.render(page=page, mistakes=mistakes) if mistakes else ""

    def _receipt(self, snippet: Snippet, record: RunRecord | None, block: Markup) -> Markup:
        failures = judge(snippet, record) if record else []
        return Markup(
            _templates.get_template("block.html").render(
                block=block,
                snippet=snippet,
                anchor=_anchor(snippet),
                is_file="#" not in snippet.name,
                record=record,
                record_url=self._relative(f"records/{file_name(snippet)}"),
                verdict=verdict(snippet, record, bool(failures)),
                failures=failures,
                rules=_RULES,
                declared=DECLARED,
                figures=_figures(snippet, record),
                most_rows=_MOST_ROWS,
                **(_facts(record) if record else {}),
            )
        )

    @property
    def chart_fence(self) -> dict[str, Any]:
        """A custom fence for pymdownx.superfences."""
        return {
            "name": CHART,
            "class": CHART,
            "validator": lambda *_: True,
            "format": lambda source, *_, **__: self.chart(source),
        }

    def chart(self, source: str) -> Markup:
        """The fence of a chart: drawing, caption, data table, downloads."""
        use = self._build.take_chart(self._page, source)
        if use is None:
            return Markup("")
        return self._safely(use.place, lambda: self._chart(use))

    def _chart(self, use: ChartUse) -> Markup:
        data = self._build.chart(use)
        drawing = charts.drawing(data, use.anchor, self._build.drawings) if data else None
        template = _templates.get_template("chart.html")
        waits = any(name in self._build.waiting for name in use.spec.snippets)
        return Markup(
            template.render(
                use=use,
                data=data,
                drawing=drawing,
                absent=RUNNING if waits else NOT_RUN,
                **self._links(use, data),
            )
        )

    def _links(self, use: ChartUse, data: chart_data.Data | None) -> dict[str, Any]:
        return {
            "most_rows": _MOST_ROWS,
            "downloads": {
                ending.upper(): self._relative(f"charts/{use.name}.{ending}") for ending in _FILES
            },
            "records": {
                source.snippet: self._relative(f"records/{source.snippet.replace('#', '-')}.json")
                for source in (data.sources if data else [])
            },
        }

    def downloads(self) -> Iterator[tuple[str, str]]:
        """Path below the site's root, and text, of the files that charts offer."""
        for use in self._build.charts:
            if data := self._build.chart(use):
                for ending, write in _FILES.items():
                    yield f"charts/{use.name}.{ending}", write(data)

    def value(self, expression: str) -> Markup:
        """A value in prose, linked to the record it comes from; or a table."""
        if expression in self._build.tables:
            return self._table(expression)
        shown = self._build.value(expression)
        if shown is None or shown.text is None:
            html = Markup('<span class="measured-value measured-missing">{}</span>').format(
                self._absent(expression)
            )
        else:
            html = self._link(expression, shown.name, shown.text)
        return html + _mark(shown.claims) if shown and shown.claims else html

    def _absent(self, expression: str) -> str:
        """What a page says in place of a value."""
        waits = expression.partition(".")[0].strip() in self._build.waiting
        return RUNNING if waits else NOT_RUN

    def _link(self, expression: str, name: str, text: str) -> Markup:
        if name in evidence.NAMES:
            target = evidence.file_name(name)
        elif name in self._build.built_in:
            target = "report.json"
        else:
            target = f"records/{name.replace('#', '-')}.json"
        if len(text) <= _SHORT:  # A number stays with its unit; a long text may wrap.
            text = text.replace(" ", "\u00a0")
        return Markup('<a class="measured-value" href="{}" title="Measured: {}">{}</a>').format(
            self._relative(target), expression, text
        )

    def _table(self, name: str) -> Markup:
        if name not in evidence.TABLES:
            return self._differences()
        headings, rows = evidence.table(self._build.evidence, name)
        template = _templates.get_template("table.html")
        return Markup(template.render(headings=headings, rows=rows))

    def _differences(self) -> Markup:
        """Every declared difference that this build measured."""
        rows = [
            (snippet, record, self._address(snippet), found)
            for snippet, record in self._build.pairs
            if record and snippet.expects.diverges
            for found in differences(record.audit.calls if record.audit else [])
        ]
        return Markup(_templates.get_template("differences.html").render(rows=rows))

    def _address(self, snippet: Snippet) -> str:
        """Link from the page that is being drawn to the block of a snippet."""
        page = snippet.place.page
        target = "" if page == self._page else self._relative(self.urls[page])
        return f"{target}#{_anchor(snippet)}"

    def _relative(self, target: str) -> str:
        relative = posixpath.relpath(target, posixpath.dirname(self._url) or ".")
        return f"{relative}/" if target.endswith("/") else relative


def _mark(made: list[Claim]) -> Markup:
    """What stands behind a value that is claimed: whether it holds."""
    told = "; ".join(
        f"claim: {claim.bound}; {claim.outcome}" + (f" ({claim.reason})" if claim.reason else "")
        for claim in made
    )
    template = _templates.get_template("claim.html")
    return Markup(template.render(outcome=claims.worst(made), told=told))


_SUPERFENCES = "pymdownx.superfences"

_kept: dict[tuple[str, ...], Markup] = {}
"""Blocks of source and output that this process has drawn: a server draws them again and again."""


def _drawn(code: str, output: str, md: markdown.Markdown, options: dict[str, Any]) -> Markup:
    # Code and its output hold no heading and no value, so that nothing else of the page shows.
    config = markdown_exec.markdown_config
    named = [e for e in config.exts or [] if not isinstance(e, Values)]
    # The fences of a build are its own, and none of them stands in a block.
    settings = {k: v for k, v in (config.exts_config or {}).items() if k != _SUPERFENCES}
    key = (code, output, repr(options), repr(named), repr(settings))
    if key not in _kept:
        _kept[key] = markdown_exec.base_format(
            language="python", run=lambda *_, **__: output, code=code, md=md, **options
        )
    return _kept[key]


def _anchor(snippet: Snippet) -> str:
    return snippet.name.replace("/", "-").replace("#", "-")


def _figures(snippet: Snippet, record: RunRecord | None) -> list[captured.Shown]:
    return [
        captured.shown(figure, f"{_anchor(snippet)}-figure-{number}")
        for number, figure in enumerate(record.figures if record else [], 1)
    ]


def _facts(record: RunRecord) -> dict[str, Any]:
    """Lines of the receipt that need more than a look-up."""
    books = record.books
    return {
        "starts": _starts(record),
        "graphs": _graphs(record),
        "noise": noise.reasons(record),
        "unchecked": _unchecked(record.audit.calls if record.audit else []),
        "differences": [
            "; ".join([found.headline, *found.details])
            for found in differences(record.audit.calls if record.audit else [])
        ],
        "breaks": [f"{b.file}:{b.line} {b.reason}".rstrip() for b in books.breaks],
        "recompiled": [
            f"{c.compile_id} {c.function}: {c.recompile_reason}"
            for c in books.compiles
            if c.recompile_reason and c.failure is None
        ],
        "timings": [
            f"{t.name}: median {values.seconds(t.median)}, min {values.seconds(t.minimum)}, "
            f"IQR {values.seconds(t.iqr)}, n {t.n}, threads {t.threads}"
            for t in record.timings
        ],
        "comparisons": [_compared(found) for found in comparisons(record.timings)],
    }


def _compared(found: Comparison) -> str:
    low, high = map(values.times, found.quartiles)
    spread = f", half of {len(found.ratios)} rounds between {low} and {high}"
    return f"{found.name} {values.times(found.median)}{spread if found.in_turns else ''}"


def _unchecked(calls: list[Call]) -> list[tuple[str, str, str, list[int]]]:
    """(callable, verdict, detail, call numbers) of the calls that were not compared."""
    groups: dict[tuple[int, int, str, str, str], list[int]] = {}
    for call in calls:
        if call.verdict not in ("agrees", "diverges"):
            key = (call.process, call.callable_index, call.callable, call.verdict, call.detail)
            groups.setdefault(key, []).append(call.number)
    return [(*key[2:], numbers) for key, numbers in groups.items()]


class _Phase(NamedTuple):
    name: str
    label: str
    seconds: float
    share: float
    """Percent of the longest start."""


class _Start(NamedTuple):
    """The compiles of one process."""

    name: str
    seconds: float
    phases: list[_Phase]
    compiles: int
    hits: int
    misses: int


def _starts(record: RunRecord) -> list[_Start]:
    """The cold start, and the warm one where it was measured."""
    kept = {"cold": record.books, "warm": record.warm}
    longest = max((books.compile_seconds for books in kept.values() if books), default=0.0)
    return [
        _Start(
            name,
            books.compile_seconds,
            [
                _Phase(phase, label, seconds, 100 * seconds / longest if longest else 0.0)
                for phase, label in PHASES.items()
                if (seconds := books.phase_seconds(phase)) or phase != "toolchain"
            ],
            len(books.compiles),
            sum(each.cache_hits for each in books.compiles),
            sum(each.cache_misses for each in books.compiles),
        )
        for name, books in kept.items()
        if books and books.compiles
    ]


def _graphs(record: RunRecord) -> list[str]:
    """A line for each compile, where there are several."""
    if len(record.books.compiles) < 2:
        return []
    return [
        f"{each.compile_id} {each.function}{' (backward)' if each.backward else ''}: "
        + ", ".join(
            f"{label} {values.seconds(seconds)}"
            for phase, label in PHASES.items()
            if (seconds := getattr(each, f"{phase}_seconds"))
        )
        + f"; disk cache {each.cache_hits} hits, {each.cache_misses} misses"
        for each in record.books.compiles
    ]
