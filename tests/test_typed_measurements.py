"""No measurement is typed by hand: a number beside a unit of time, speed or memory is a value.

A quoted figure of somebody else stands in quotation marks or in a block quotation, with its source.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from prose import DIGITS, NUMBER, prose

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SNIPPETS = sorted((ROOT / "snippets").rglob("*.py"))


_WORDS = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozens?|tens)"
)
_AMOUNT = rf"(?:{NUMBER}|\b{_WORDS}(?:[\s-]+{_WORDS})*(?:\s+of)?)"
# A line may end between a number and its unit.
_GAP = r"(?:-|[^\S\n]*\n?[^\S\n]*)"
_GAP_WORD = r"(?:(?:whole|full|more|extra|further|additional|long|CPU|wall-clock)[^\S\n]+)?"

_TIME = r"(?i:(?:nano|micro|milli)?seconds?|secs?|minutes?|mins?|hours?|hrs?)"
_SIZE = r"(?:[kKMGTP]i?B(?:ytes?)?|(?i:(?:kilo|mega|giga|tera|kibi|mebi|gibi)?bytes?)|[KMG]i?bits?)"
_RATE = r"(?:[A-Za-z]+(?:/|\s+(?:per|a)\s+)(?:second|sec|s|minute|min|ms|µs)|fps|[kMG]?Hz|[KMGTP]?FLOPs?(?:/s)?|[KMGTP]?FLOPS)"
_SHARE = r"(?i:%|‰|percent|per cent|percentage points?)"
_SIGN = r"(?:[×xX](?!\s*\d))"  # Before another number, it is a shape.
_UNIT = rf"(?:{_RATE}|{_TIME}|[nµu]s|ms|s|h|{_SIZE}|{_SHARE}|{_SIGN}|(?i:times|fold))"
_WORDY_UNIT = rf"(?:{_TIME}|{_SIZE}|{_RATE}|{_SHARE}|fold)"

_COMPARED = r"(?:fast|slow|quick|long|short|large|big|small|cheap|high|low|much|many|expensive)"
_QUANTITY = r"(?:time|speed|memory|throughput|cost|wait|size|latency|bandwidth|seconds|performance)"
_HEDGE = r"(?:about|around|roughly|nearly|almost|over|up to|at least|only|some)"

_MEASUREMENTS = [
    re.compile(pattern, re.IGNORECASE if ignore else 0)
    for ignore, pattern in [
        (False, rf"{NUMBER}(?:{_GAP}{_GAP_WORD}){_UNIT}(?!\w)"),
        (False, rf"(?<!\w)(?<!\d )×{DIGITS}"),
        (True, rf"\b{_WORDS}(?:[\s-]+{_WORDS})*(?:\s+of)?(?:[\s-]+{_GAP_WORD}){_WORDY_UNIT}\b"),
        (True, rf"\b(?:{_WORDS})fold\b"),
        (True, rf"{_AMOUNT}\s+times\s+(?:as\s+{_COMPARED}|{_COMPARED}(?:e?r)\b|the\s+{_QUANTITY})"),
        (True, rf"\b(?:twice|half|double|thrice)\s+(?:as\s+{_COMPARED}|the\s+{_QUANTITY})\b"),
        (True, rf"\b(?:half|quarter|third|tenth)\s+(?:of\s+)?an?\s+{_TIME}\b"),
        (
            True,
            rf"\b(?:halv|doubl|tripl|quadrupl)(?:es|ed|ing)\s+(?:its\s+|the\s+)?{_QUANTITY}\b",
        ),
        (
            True,
            rf"\b(?:factor|speed-?ups?|slow-?downs?|ratio)(?:\s+(?:of|by|is|was))?\s*[:=]?\s*"
            rf"(?:{_HEDGE}\s+)?{_AMOUNT}(?!\w)",
        ),
        (True, r"\borders?\s+of\s+magnitude\b"),
    ]
]
_DECADE = re.compile(r"[12]\d{2}0s")

_DELIMITER = re.compile(r"^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*$")
_HEADED = re.compile(
    rf"(?:^|[(,]\s*|\bin\s+)(?:{_TIME}|[nµu]s|ms|s|{_SIZE}|{_RATE}|{_SHARE})\)?$"
    r"|^(?:speed-?up|slow-?down|ratio)\b",
    re.IGNORECASE,
)


def typed_measurements(markdown: str) -> list[tuple[int, str]]:
    """(line, text) of what a reader takes for a measurement, and an author typed.

    Code, values and quotations are passed over.
    """
    text = prose(markdown)
    hits = [match for pattern in _MEASUREMENTS for match in pattern.finditer(text)]
    found: list[tuple[int, int, str]] = []
    end = -1
    for match in sorted(hits, key=lambda match: (match.start(), -match.end())):
        if match.start() >= end and not _DECADE.fullmatch(match[0]):
            end = match.end()
            line = text.count("\n", 0, match.start()) + 1
            found.append((line, match.start(), " ".join(match[0].split())))
    found += _cells_under_a_unit(text)
    return [(line, text) for line, _, text in sorted(found)]


def _cells_under_a_unit(prose: str) -> Iterator[tuple[int, int, str]]:
    """Bare numbers in the columns of a table whose heading names the unit."""
    lines = prose.split("\n")
    for index, line in enumerate(lines[1:], 1):
        if not _DELIMITER.match(line):
            continue
        headings = _cells(lines[index - 1])
        for row, body in enumerate(lines[index + 1 :], index + 2):
            if "|" not in body:
                break
            for column, (heading, cell) in enumerate(zip(headings, _cells(body), strict=False)):
                if _HEADED.search(heading) and re.fullmatch(rf"[~≈<>]?\s*{NUMBER}", cell):
                    yield row, column, f"{heading}: {cell}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def comments(program: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the comments and docstrings of a program."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        alone = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and alone):
            yield token.start[0], token.string.strip("#\"' ")
        before = token.type


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The call took 3.2 s.", ["3.2 s"]),
        ("It is 10x faster, 2.5× or 3 times.", ["10x", "2.5×", "3 times"]),
        ("It needs 512 MiB, 12 µs and 40 %.", ["512 MiB", "12 µs", "40 %"]),
        ("3-4 s, 3–4 s, 3 to 4 s, 3 - 4 s, 1/3 s", ["3-4 s", "3–4 s", "4 s", "3 - 4 s", "1/3 s"]),
        ("~3 s, ≈3 s, <3 s, -3 %, −3 %, +3 %, .5 s", ["3 s"] * 3 + ["3 %"] * 3 + [".5 s"]),
        ("1e-3 s, 1.5E3 s, 10⁻³ s", ["1e-3 s", "1.5E3 s", "3 s"]),
        ("1,000 ms and 1 000 ms", ["1,000 ms", "000 ms"]),
        ("2.5 milliseconds, 3 microseconds, 1 sec, 2 min, 3 h", [
            "2.5 milliseconds", "3 microseconds", "1 sec", "2 min", "3 h",
        ]),
        ("a 10-second wait, 3 whole seconds, 3 CPU seconds", [
            "10-second", "3 whole seconds", "3 CPU seconds",
        ]),
        ("20 GB/s, 1000 tokens/s, 12 it/s, 3 calls per second", [
            "20 GB/s", "1000 tokens/s", "12 it/s", "3 calls per second",
        ]),
        ("3 GHz, 5 TFLOPS, 5 GFLOP/s, 60 fps", ["3 GHz", "5 TFLOPS", "5 GFLOP/s", "60 fps"]),
        ("4 kB, 2 gigabytes, 8 Mbit, 100 bytes", ["4 kB", "2 gigabytes", "8 Mbit", "100 bytes"]),
        ("3 percent, 3 per cent, 1.5-fold, 3%", ["3 percent", "3 per cent", "1.5-fold", "3%"]),
        ("a ×3 speed-up", ["×3"]),
        ("twice as fast, half the time, half as long", [
            "twice as fast", "half the time", "half as long",
        ]),
        ("half a second, a quarter of a second, half an hour", [
            "half a second", "quarter of a second", "half an hour",
        ]),
        ("a factor of 3, a speedup of about 2, ratio: 1.7", [
            "factor of 3", "speedup of about 2", "ratio: 1.7",
        ]),
        ("three times faster, ten times as long, a factor of ten", [
            "three times faster", "ten times as long", "factor of ten",
        ]),
        ("It halves the time. An order of magnitude!", ["halves the time", "order of magnitude"]),
        ("three seconds, twenty-five minutes, a hundred milliseconds, fifty percent", [
            "three seconds", "twenty-five minutes", "hundred milliseconds", "fifty percent",
        ]),
        ("tens of microseconds, tenfold, two-fold", ["tens of microseconds", "tenfold", "two-fold"]),
        ("Five minutes later; the page [Five minutes](a.md); five minutes", ["five minutes"]),
    ],
)  # fmt: skip
def test_a_measurement_is_found_however_it_is_put(text, found):
    assert [text for _, text in typed_measurements(text)] == [*found]


@pytest.mark.parametrize(
    "text",
    [
        "**3** s",
        "It took *3* seconds",
        "<b>3</b> s",
        '<span class="a">3</span>&nbsp;s',
        "3&thinsp;s",
        "3 Seconds",
        "`3` s",
        "3\u202fs",
        "3 &micro;s and",
        "&#51; s",
        "3\\.2 s",
        "It took 3\nseconds.",
        "- It took 3\n    seconds.",
        "(3s)",
        "[3](a.md) s",
        "[3 s](a.md)",
        "![3 s](a.png)",
        '![a](a.png "3 s")',
        '<img src="a.png" alt="3 s">',
        'Hover{: title="3 s" }',
        "# A wait of 3 s",
        '!!! note "A wait of 3 s"',
        '??? success "3 s, executed"',
        '=== "3 s"',
        "- item: 3 s",
        "1. 3 s",
        "| a | 3 s |\n|---|---|\n",
        "| a | b |\n|---|---|\n| c | 3 s |",
        "| a | time (s) |\n|---|---|\n| c | 3.2 |",
        "a | ms\n--- | ---:\nc | **12**",
        "| a | speed-up |\n|---|---|\n| c | 1.7 |",
        "---\ntitle: T\ndescription: It took 3 s.\n---\n",
        '---\ndescription: "It took 3 s."\n---\n',
        '```python exec="on" title="3 s"\nx\n```',
        "```text\ntook 3 s\n```",
        "```\ntook 3 s\n```",
        "<p>3 s</p>",
        '"Quoted", and 3 s, and "quoted"',
        "It took {{ a/b.c | seconds }}, not 3 s.",
    ],
)
def test_a_measurement_is_found_wherever_it_stands(text):
    assert len(typed_measurements(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '> "That call took 85 seconds"',
        'They say "85 seconds" there, and \u201c85\nseconds\u201d.',
        "It took {{ a/b.c | seconds | at_most(3) }}; type `3 s` or ``3 ` s``.",
        '{{ a/b.c | times | at_least(2) | on("cpu") }} seconds',
        "| {{ a/b.c \\| seconds }} | n |\n|---|---|\n| {{ a/b.d \\| times \\| between(1, 2) }} | 3 |",
        "torch 2.15 on 2 cores, in 3 calls, 8 sizes, float32, 16 bits, 3 ULP",
        "Calls 1, 2 and 3. Eager runs three times more. It runs twice.",
        "```python\nx = 3  # s\ntime.sleep(3) # 3 s\n```\n",
        '=== "a"\n\n    ```python\n    # 3 s\n    ```\n',
        "````markdown\n```text\n3 s\n```\n````",
        "<!-- 3 s\n3 s -->",
        "[a](https://a.b/3-s) https://a.b/3%20s [b](#3-s) [c][3s]",
        "[x]: https://a.b/3s",
        "a 64 x 64 and a 64 × 64 matrix, in the 1990s",
        "The factor is what rule 3 would need. Above 1, compiled is faster.",
        "| graphs | s |\n|---|---|\n| 3 | {{ a/b.c }} |",
        "3 {{ a/b.c }} s",
        "1. Second, it compiles.\n2. Speed.",
        "## Three checks {#three-s}",
    ],
)
def test_ordinary_prose_code_values_and_quotations_pass(text):
    assert typed_measurements(text) == []


def test_a_measurement_is_told_with_its_line():
    text = '---\ntitle: T\n---\n\n```python exec="on"\nx\n```\n\nA\n"b\nc" `d\ne` took 3 s,\n\n<i\nid="x">4 s</i>\n'
    assert typed_measurements(text) == [(12, "3 s"), (15, "4 s")]


def test_comments_and_docstrings_of_a_program_are_read_and_its_code_is_not():
    program = '"""Takes 3 s."""\nx = 1  # 4 s\n\n\ndef f():\n    """5 s"""\n    return "6 s"\n'
    assert list(comments(program)) == [(1, "Takes 3 s."), (2, "4 s"), (6, "5 s")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_measurement_is_typed_on_a_page(path):
    assert typed_measurements(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_measurement_is_typed_in_a_comment_of_a_program(path):
    told = [(line, typed_measurements(text)) for line, text in comments(path.read_text("utf-8"))]
    assert [(line, found) for line, found in told if found] == []
