"""Reads pages: which fences run, which values and charts they quote, and where each stands.

A page is converted once for nothing but this, with the site's own Markdown configuration and a
formatter that collects instead of running. What Markdown itself takes for a fence is a fence:
tabs, admonitions and four-backtick examples need no second scanner. Lines are known because each
line that looks like an executed fence or a chart, or holds a value, is numbered first; what was
numbered must come back as a collected fence or value, or stand visibly inside a code block.
Anything else is an author's mistake that Markdown would have swallowed, such as a header it can not
parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import msgspec
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

from measured import chart_spec
from measured.snippets import Mistake, Place, Snippet, expectations, resolve

LANGUAGES = ("python", "py")
"""Fence languages that can be executed."""

CHART = "chart"
"""The fence language of a chart."""

_HEADER = re.compile(r"^(?P<start>[\s>]*(?:`{3,}|~{3,}).*?\bexec)(?P<rest>\b.*)$")
_CHART_HEADER = re.compile(
    rf"^(?P<start>[\s>]*(?:`{{3,}}|~{{3,}})\s*(?:\{{\s*)?\.?{CHART})(?P<rest>(?![\w#.+-]).*)$"
)
_EXEC_VALUE = re.compile(r"^\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s}]+)")
_VALUE = re.compile(r"\{\{(?P<body>[^{}\n]*)\}\}")
_LINE_OPTION = "fenceline"
_MARK = "\x1f"  # Unit separator: no one types it, and Markdown leaves it alone.


class ValueUse(msgspec.Struct, frozen=True):
    """A value quoted in prose."""

    expression: str
    place: Place


class Problem(msgspec.Struct, frozen=True):
    """An author's mistake on a page."""

    place: Place
    message: str


class ChartUse(msgspec.Struct, frozen=True):
    """A chart's fence."""

    spec: chart_spec.Spec
    source: str
    """The fence's body."""
    place: Place

    @property
    def name(self) -> str:
        """Of its files below the site's folder for charts, without an ending."""
        return f"{self.place.page.removesuffix('.md')}/{self.spec.slug}"

    @property
    def anchor(self) -> str:
        return f"chart-{self.spec.slug}"


class Page(msgspec.Struct, frozen=True):
    """What one page asks for, in the order it stands there."""

    path: str
    snippets: list[Snippet]
    values: list[ValueUse]
    problems: list[Problem]
    charts: list[ChartUse] = []


class Values(Extension):
    """Markdown extension: `{{ expression }}` in prose becomes the HTML of `show(expression)`.

    An inline pattern after code spans and escapes, so that code is never touched.
    """

    def __init__(self, show: Callable[[str], str]) -> None:
        super().__init__()
        self._show = show

    def extendMarkdown(self, md: markdown.Markdown) -> None:
        show = self._show

        class Pattern(InlineProcessor):
            def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
                # Stashed as HTML: MkDocs checks links that Markdown made, and records are no pages.
                # In a table's cell the filter's bar is escaped.
                body = m["body"].replace(r"\|", "|").strip()
                html = self.md.htmlStash.store(show(body))
                return html, m.start(0), m.end(0)

        # After code spans (190), before escapes (180).
        md.inlinePatterns.register(Pattern(_VALUE.pattern, md), "measured-value", 185)


def read_page(
    path: str,
    text: str,
    first_line: int,
    snippets_folder: Path,
    extensions: list[Any],
    configs: dict[str, dict[str, Any]],
) -> Page:
    """Collect the executed fences and the quoted values of one page.

    `text` is the page without its front matter, `first_line` the line in the file at which it
    starts. `extensions` and `configs` are the site's own.
    """
    collector = _Collector(path, snippets_folder)
    numbered, expected = _number(text, first_line)
    html = _convert(numbered, collector, extensions, configs)
    visible = _Visible()
    visible.feed(html)
    for fence in (*collector.snippets, *collector.charts):
        if fence.place.line in visible.lines:
            collector.problem(
                fence.place.line,
                "an executed fence inside an indented code block: show an example in a fence of "
                "four backticks",
            )
    for line in sorted(expected - collector.lines - visible.lines):
        collector.problem(
            line,
            "this looks like an executed fence, a chart or a value, and Markdown takes it for "
            'neither (a fence needs ```python exec="on" with every option as name="value"; '
            'a value inside raw HTML needs markdown="1" on its element)',
        )
    collector.problems.sort(key=lambda problem: problem.place)
    return Page(path, collector.snippets, collector.values, collector.problems, collector.charts)


class _Collector:
    def __init__(self, path: str, snippets_folder: Path) -> None:
        self._path = path
        self._folder = snippets_folder
        self.snippets: list[Snippet] = []
        self.values: list[ValueUse] = []
        self.charts: list[ChartUse] = []
        self.problems: list[Problem] = []
        self.lines: set[int] = set()

    def problem(self, line: int, message: str) -> None:
        self.problems.append(Problem(Place(self._path, line), message))

    def validate(
        self,
        language: str,
        inputs: dict[str, str],
        options: dict[str, Any],
        attrs: dict[str, Any],
        md: markdown.Markdown,
    ) -> bool:
        if "exec" not in inputs:
            return False
        options["given"] = dict(inputs)
        return True

    def format(
        self, source: str, language: str, css_class: str, options: Any, *_: Any, **__: Any
    ) -> str:
        given: dict[str, str] = options["given"]
        source, line = self._unnumbered(source, given)
        try:
            expects, shown = expectations(given)
            fallback = f"{self._path.removesuffix('.md')}#{len(self.snippets) + 1}"
            name, code = resolve(source, self._folder, fallback)
        except Mistake as mistake:
            self.problem(line, str(mistake))
            return ""
        self.snippets.append(Snippet(name, code, Place(self._path, line), expects, shown))
        return ""

    def _unnumbered(self, source: str, given: dict[str, str]) -> tuple[str, int]:
        """A fence's body as it stands on the page, and its line."""
        # Braces in code are no values: take the numbers out again.
        self.lines |= {int(number) for number in re.findall(rf"{_MARK}(\d+)", source)}
        line = int(given.pop(_LINE_OPTION, 0))
        self.lines.add(line)
        return re.sub(rf"{_MARK}\d+", "", source), line

    def validate_chart(
        self, language: str, inputs: dict[str, str], options: dict[str, Any], *_: Any
    ) -> bool:
        options["given"] = dict(inputs)
        return True

    def format_chart(
        self, source: str, language: str, css_class: str, options: Any, *_: Any, **__: Any
    ) -> str:
        given: dict[str, str] = options["given"]
        source, line = self._unnumbered(source, given)
        try:
            if given:
                raise Mistake(f"{next(iter(given))}: a chart's options stand in its fence's body")
            spec = chart_spec.parse(source)
        except Mistake as mistake:
            self.problem(line, str(mistake))
            return ""
        self.charts.append(ChartUse(spec, source, Place(self._path, line)))
        return ""

    def value(self, body: str) -> str:
        expression, _, line = body.partition(_MARK)
        self.lines.add(int(line or 0))
        self.values.append(ValueUse(expression.strip(), Place(self._path, int(line or 0))))
        return ""


def _number(text: str, first_line: int) -> tuple[str, set[int]]:
    """The text with line numbers in it, and the lines that got one."""
    lines, marked = text.split("\n"), set()
    for index, line in enumerate(lines):
        number = first_line + index
        if header := _HEADER.match(line):
            value = _EXEC_VALUE.match(header["rest"])
            cut = value.end() if value else 0
            option = f' {_LINE_OPTION}="{number}"'
            lines[index] = header["start"] + header["rest"][:cut] + option + header["rest"][cut:]
            marked.add(number)
        elif header := _CHART_HEADER.match(line):
            lines[index] = f'{header["start"]} {_LINE_OPTION}="{number}"{header["rest"]}'
            marked.add(number)
        elif _VALUE.search(line):
            lines[index] = _VALUE.sub(rf"{{{{\g<body>{_MARK}{number}}}}}", line)
            marked.add(number)
    return "\n".join(lines), marked


def _convert(
    text: str, collector: _Collector, extensions: list[Any], configs: dict[str, dict[str, Any]]
) -> str:
    fences = [
        {"name": name, "class": name, "validator": collector.validate, "format": collector.format}
        for name in LANGUAGES
    ]
    fences.append(
        {
            "name": CHART,
            "class": CHART,
            "validator": collector.validate_chart,
            "format": collector.format_chart,
        }
    )
    mine = (*LANGUAGES, CHART)
    superfences = dict(configs.get("pymdownx.superfences", {}))
    superfences["custom_fences"] = fences + [
        fence for fence in superfences.get("custom_fences", []) if fence["name"] not in mine
    ]
    # Without the snippets extension an include stays visible in the fence, and is resolved here.
    others = [e for e in extensions if e != "pymdownx.snippets" and not isinstance(e, Values)]
    md = markdown.Markdown(
        extensions=[*others, Values(collector.value)],
        extension_configs={**configs, "pymdownx.superfences": superfences},
    )
    return md.convert(text)


class _Visible(HTMLParser):
    """Finds numbered lines that stand in the page as code, as examples for the reader.

    A fence's header counts only in a code block: in a code span it is a fence that failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: set[int] = set()
        self._open: list[str] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("pre", "code"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        block = "pre" in self._open
        self._open.remove(tag)
        if not self._open:
            # Highlighting cuts a line into spans: look at the whole block's text.
            self.lines |= {int(n) for n in re.findall(rf"{_MARK}(\d+)", self._text)}
            if block:
                header = rf'{_LINE_OPTION}="(\d+)"'
                self.lines |= {int(n) for n in re.findall(header, self._text)}
            self._text = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self._text += data
