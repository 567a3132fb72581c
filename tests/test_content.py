"""The guide itself: pages and snippets keep their promises to readers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SNIPPETS = sorted((ROOT / "snippets").rglob("*.py"))

_UNITS = r"(?:ns|[µμu]s|ms|s|secs?|seconds?|minutes?|hours?|×|x|times|[KMG]i?B|kB|bytes|%|GFLOPS?)"
_MEASUREMENT = re.compile(rf"(?<![\w./-])\d[\d,]*(?:\.\d+)?[\s\u00a0-]?{_UNITS}(?!\w)")


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def typed_measurements(markdown: str) -> list[tuple[int, str]]:
    """(line, text) of numbers with a unit of time, speed or memory that an author typed.

    Code, values, and what stands in quotation marks or a block quotation are passed over: a figure
    of somebody else is quoted.
    """
    text = re.sub(
        r"^(`{3,}|~{3,}).*?^\1", lambda m: "\n" * m[0].count("\n"), markdown, flags=re.M | re.S
    )
    text = re.sub(
        r"^( {4,}(`{3,}).*?^ {4,}\2)", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S
    )
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(">"):
            continue
        prose = re.sub(
            r"`[^`]*`|\{\{[^}]*\}\}|\"[^\"]*\"|\u201c[^\u201d]*\u201d|\([^)\s]*\)", " ", line
        )
        found += [(number, match[0]) for match in _MEASUREMENT.finditer(prose)]
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The call took 3.2 s.", ["3.2 s"]),
        ("It is 10x faster, 2.5× or 3 times.", ["10x", "2.5×", "3 times"]),
        ("It needs 512 MiB, 12 µs and 40 %.", ["512 MiB", "12 µs", "40 %"]),
        ('> "That call took 85 seconds"', []),
        ('They say "85 seconds" there.', []),
        ("It took {{ a/b.c | seconds }}; type `3 s`.", []),
        ("torch 2.15 on 2 cores, in 3 calls, 8 sizes", []),
        ("```text\n3 s\n```\n5 ms", ["5 ms"]),
    ],
)
def test_the_test_for_typed_measurements_finds_them(text, found):
    assert [text for _, text in typed_measurements(text)] == found


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_no_measurement_is_typed_by_hand(path):
    assert typed_measurements(path.read_text()) == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_has_title_and_description(path):
    front = re.match(r"---\n(.*?)\n---\n", path.read_text(), flags=re.S)
    assert front
    assert re.search(r"^title: \S", front[1], flags=re.M)
    assert re.search(r"^description: \S", front[1], flags=re.M)


def test_every_snippet_stands_on_exactly_one_page():
    included = re.findall(r'--8<-- "([^"]+)"', "\n".join(path.read_text() for path in PAGES))
    files = [path.relative_to(ROOT / "snippets").as_posix() for path in SNIPPETS]
    assert sorted(included) == files


def test_there_are_at_least_ten_snippets():
    assert len(SNIPPETS) >= 10


@pytest.mark.parametrize("path", SNIPPETS, ids=page_id)
def test_a_snippet_imports_nothing_but_torch_matplotlib_and_the_standard_library(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= {"torch", "matplotlib", *sys.stdlib_module_names}


@pytest.mark.nightly
@pytest.mark.parametrize("path", SNIPPETS, ids=page_id)
def test_a_snippet_runs_alone(path, tmp_path):
    result = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path,
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
