"""Reading pages: what Markdown takes for a fence or a value is one, with its line.

What looks like one and is none is told to the author.
"""

from __future__ import annotations

from pathlib import Path

import markdown
import pytest

from measured.pages import Page, Values, read_page

EXTENSIONS = [
    "admonition",
    "attr_list",
    "md_in_html",
    "tables",
    "pymdownx.details",
    "pymdownx.highlight",
    "pymdownx.inlinehilite",
    "pymdownx.snippets",
    "pymdownx.superfences",
    "pymdownx.tabbed",
]
CONFIGS = {"pymdownx.tabbed": {"alternate_style": True}}


@pytest.fixture
def read(tmp_path: Path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "one.py").write_text("print(1)\n")

    def read(text: str, first_line: int = 1) -> Page:
        return read_page("page.md", text, first_line, tmp_path, list(EXTENSIONS), dict(CONFIGS))

    return read


INCLUDE = '```python exec="on"\n--8<-- "part/one.py"\n```\n'


def test_an_included_file_is_a_snippet_named_after_its_path(read):
    (snippet,) = read(f"# Title\n\n{INCLUDE}").snippets
    assert (snippet.name, snippet.source, str(snippet.place)) == (
        "part/one",
        "print(1)",
        "page.md:3",
    )


def test_lines_are_counted_from_the_top_of_the_file(read):
    assert read(INCLUDE, first_line=5).snippets[0].place.line == 5


def test_code_in_the_fence_is_a_snippet_named_after_the_page(read):
    (snippet,) = read('```py exec="on" graphs="0"\nprint({{"a": 1}})\n```').snippets
    assert (snippet.name, snippet.source) == ("page#1", 'print({{"a": 1}})')


@pytest.mark.parametrize(
    "wrapped",
    [
        '=== "Tab"\n\n    ```python exec="on"\n    print(2)\n    ```\n',
        '!!! note\n\n    ```python exec="on"\n    print(2)\n    ```\n',
        '??? question "q"\n\n    ```python exec="on"\n    print(2)\n    ```\n',
        '- item\n\n    ```python exec="on"\n    print(2)\n    ```\n',
        '> ```python exec="on"\n> print(2)\n> ```\n',
        '~~~python exec="on"\nprint(2)\n~~~\n',
        '```{.python exec="on"}\nprint(2)\n```\n',
    ],
)
def test_fences_are_found_wherever_markdown_allows_them(read, wrapped):
    page = read(f"text\n\n{wrapped}")
    assert [s.source for s in page.snippets] == ["print(2)"]
    assert not page.problems


@pytest.mark.parametrize(
    "example",
    [
        f"````markdown\n{INCLUDE}````\n",
        'Type `{{ a.b }}` and `exec="on"`.',
        "```python\nx = '{{ a.b }}'\n```\n",
    ],
)
def test_examples_are_neither_run_nor_mistakes(read, example):
    page = read(f"text\n\n{example}")
    assert (page.snippets, page.values, page.problems) == ([], [], [])


@pytest.mark.parametrize(
    ("fence", "message"),
    [
        ('```python exec="on" graphz="1"\n1\n```', 'unknown option graphz="1"'),
        ('```python exec="on" graphs="two"\n1\n```', "a whole number"),
        ('```python exec="on" timeout="-1"\n1\n```', "a number of seconds"),
        ('```python exec="on" needs="tpu"\n1\n```', "cuda"),
        ('```python exec="on" fresh="maybe"\n1\n```', '"yes" or "no"'),
        ('```python exec="on" raises="1+1"\n1\n```', "name of an exception"),
        (
            '```python exec="on" diverges="valeu" upstream="by-design"\n1\n```',
            "names of differences",
        ),
        ('```python exec="on" diverges="" upstream="by-design"\n1\n```', "names of differences"),
        ('```python exec="on" diverges="rng value" upstream="by-design"\n1\n```', '"rng" alone'),
        ('```python exec="on" diverges="value"\n1\n```', "stand together"),
        ('```python exec="on" upstream="pytorch#117265"\n1\n```', "stand together"),
        ('```python exec="on" diverges="value" upstream="117265"\n1\n```', 'expected "pytorch#"'),
        ('```python exec="off"\n1\n```', 'the only value is "on"'),
        ('```python exec="on"\n--8<-- "part/none.py"\n```', "does not exist"),
        ('```python exec="on"\n--8<-- "../secret.py"\n```', "not a .py file below"),
        ('```python exec="on"\n--8<-- "part/one.py"\nmore()\n```', "one include and nothing else"),
        ('```python exec="on"\n--8<-- part/one.py\n```', "an include must look like"),
        ('```python exec="on"\n```', "empty"),
        ('```python exec="on" graphs=1\n1\n```', "takes it for neither"),
        ('```bash exec="on"\nls\n```', "takes it for neither"),
        ("```python exec=on\n1\n```", "takes it for neither"),
        ("<div>{{ a.b }}</div>", "takes it for neither"),
        ('    ```python exec="on"\n    1\n    ```', "four backticks"),
    ],
)
def test_a_mistake_names_page_and_line(read, fence, message):
    (problem,) = read(f"text\n\n{fence}\n").problems
    assert str(problem.place) == "page.md:3"
    assert message in problem.message


def test_a_declared_difference_keeps_its_names_and_the_address_of_its_issue(read):
    fence = '```python exec="on" diverges="grad/value  nan" upstream="pytorch#117265"\n1\n```\n'
    (snippet,) = read(fence).snippets
    assert snippet.expects.diverges == ("grad/value", "nan")
    assert snippet.expects.issue_url == "https://github.com/pytorch/pytorch/issues/117265"


def test_what_is_by_design_has_no_issue(read):
    fence = '```python exec="on" diverges="rng" upstream="by-design"\n1\n```\n'
    (snippet,) = read(fence).snippets
    assert (snippet.expects.upstream, snippet.expects.issue_url) == ("by-design", None)


def test_values_are_collected_with_their_lines(read):
    page = read(
        "# {{ a/b.title }}\n\nSee {{ a/b.x | seconds }} and {{ c.y }}.\n\n| {{ c.z \\| count }} |\n|-|\n"
    )
    assert [(use.expression, use.place.line) for use in page.values] == [
        ("a/b.title", 1),
        ("a/b.x | seconds", 3),
        ("c.y", 3),
        ("c.z | count", 5),
    ]


def test_rendering_replaces_values_in_prose_and_never_in_code():
    html = markdown.markdown(
        "{{ a.b }} `{{ a.b }}`\n\n    {{ a.b }}\n", extensions=[Values(lambda e: f"<i>{e}</i>")]
    )
    assert html.count("<i>a.b</i>") == 1
    assert html.count("{{ a.b }}") == 2
