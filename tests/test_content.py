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


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
