"""The guide itself: pages and snippets keep their promises to readers."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prose import prose

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SNIPPETS = sorted((ROOT / "snippets").rglob("*.py"))


NAVIGATION = {"index.md", "lessons/ledger.md"}
"""Pages that lead to others, or quote what other pages ran."""

SAID_BY_READERS = {
    "slower than eager": "start/is-it-for-me.md",
    "did it compile": "start/checks.md",
    "No working C++ compiler found": "start/install.md",
    "cl is not found": "start/install.md",
    "_orig_mod": "use/apply.md",
    "state_dict": "use/apply.md",
    "pickle": "use/apply.md",
    "first request": "use/inference.md",
    "freezing": "use/inference.md",
    "inference_mode": "use/inference.md",
    "training loop": "use/training.md",
    "optimizer.step": "use/training.md",
    "slower on CPU": "use/cpu.md",
    "threads": "use/cpu.md",
    "cudagraph_mark_step_begin": "use/gpu.md",
    "overwritten by a subsequent run": "use/gpu.md",
    "Not enough SMs": "use/gpu.md",
    "max-autotune": "use/modes.md",
    "reduce-overhead": "use/modes.md",
    "Unrecognized mode": "use/modes.md",
    "Either mode or options can be specified": "use/options.md",
    "InvalidBackend": "use/backends.md",
    "autocast": "use/amp.md",
    "GradScaler": "use/amp.md",
}
"""What people type into a search box -> the page that answers."""

_HYPE = (
    r"significant(?:ly)?|dramatic(?:ally)?|massive(?:ly)?|incredibl[ey]|amazing(?:ly)?|"
    r"blazing(?:ly)?|seamless(?:ly)?|effortless(?:ly)?|powerful(?:ly)?|game.changer|huge(?:ly)?|"
    r"simply|obviously|easily|of course|meaningfully|substantial(?:ly)?|drastic(?:ally)?"
)


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_has_title_and_description(path):
    front = re.match(r"---\n(.*?)\n---\n", path.read_text(), flags=re.S)
    assert front
    assert re.search(r"^title: \S", front[1], flags=re.M)
    assert re.search(r"^description: \S", front[1], flags=re.M)


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_opens_with_the_readers_question(path):
    _, _, body = path.read_text().split("---\n", 2)
    title, question = [block for block in body.split("\n\n") if block.strip()][:2]
    assert title.strip().startswith("# ")
    assert re.fullmatch(r"\*[^*]+\?\*", question.strip(), flags=re.S), question


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_stands_in_the_navigation(path):
    # Tags such as !ENV are of MkDocs alone; the navigation has none.
    text = (ROOT / "mkdocs.yml").read_text()
    nav = yaml.safe_load(re.search(r"^nav:\n(?:[ \n].*\n)+", text, flags=re.M)[0])
    assert path.relative_to(ROOT / "docs").as_posix() in str(nav)


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_executes_something_unless_it_leads_to_others(path):
    if path.relative_to(ROOT / "docs").as_posix() not in NAVIGATION:
        assert re.search(r'^ *```python exec="on"', path.read_text(), flags=re.M)


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_a_page_praises_nothing(path):
    assert not re.findall(rf"\b(?:{_HYPE})\b", prose(path.read_text()), flags=re.I)


@pytest.mark.parametrize(("words", "page"), SAID_BY_READERS.items())
def test_the_words_that_people_search_for_stand_on_the_page_that_answers(words, page):
    text = (ROOT / "docs" / page).read_text()
    # What a snippet prints is found, too, but changes with it.
    assert words.casefold() in text.casefold()


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
