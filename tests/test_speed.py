"""A site as large as the guide will be, with all results there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sites import ROOT, make_site, mkdocs

from measured import machine, store
from measured.record import SCHEMA, Audit, Books, Conditions, Process, RunRecord
from measured.snippets import Expectations, Place, Snippet, content_key

PAGES, FENCES, PARAGRAPHS = 60, 3, 12
REBUILD_SECONDS = 5.0
"""For a build that runs nothing."""

CONFIG = ROOT / "mkdocs.yml"


def code(number: int) -> str:
    return f'x = {number}\nprint("x is", x)'


def text(page: int) -> str:
    prose = (
        f"A paragraph of *prose* with `code`, a [link](page{(page + 1) % PAGES:02}.md) and\n"
        "**words**, which goes on for a second line,\nand for a third.\n\n"
    )
    sections = [
        f"## Section {n}\n\n{prose * PARAGRAPHS}"
        f'```python exec="on" graphs="0"\n{code(page * FENCES + n)}\n```\n\n'
        for n in range(FENCES)
    ]
    return f"# Page {page}\n\n" + "".join(sections)


def fill(cache: Path) -> None:
    """Store a record for each fence."""
    here = machine.describe()
    for page in range(PAGES):
        for n in range(FENCES):
            name = f"page{page:02}"
            snippet = Snippet(
                f"{name}#{n + 1}", code(page * FENCES + n), Place(f"{name}.md", 1),
                Expectations(graphs=0), {},
            )  # fmt: skip
            key = content_key(
                snippet,
                machine=machine.fingerprint(here),
                engine=store.engine_version(),
                environment=os.environ,
            )
            process = Process("finished", "", 1.0, 0.5, 1 << 20, "x is something\n")
            store.Store(cache / "records").save(
                RunRecord(
                    SCHEMA, key, snippet.name, snippet.source, {}, "2026-01-01T00:00:00+00:00",
                    here, process, 1, Conditions(0.0, 0.0, 0.0, 0, None), Books([], []), None,
                    {"x": 1}, [], [], Audit(process, [], 0, False, None, ""),
                )
            )  # fmt: skip


@pytest.mark.nightly
def test_a_rebuild_of_sixty_pages_runs_nothing_and_takes_less_than_five_seconds(tmp_path):
    site = make_site(tmp_path / "site", {f"page{page:02}.md": text(page) for page in range(PAGES)})
    # With the plugins and extensions of the guide.
    config = CONFIG.read_text()
    head, tail = config[: config.index("nav:")], config[config.index("theme:") :]
    (site / "mkdocs.yml").write_text(
        head.replace("watch: [snippets, hooks]\n", "").replace(
            "hooks/site.py", str(ROOT / "hooks" / "site.py")
        )
        + tail.replace("extra_css: [assets/measured.css]", "")
    )
    fill(tmp_path / "cache")
    took = []
    for _ in range(2):  # What one start of a process is disturbed by is not the build's.
        began = time.perf_counter()
        result = mkdocs(site, tmp_path / "cache", "build", "--strict")
        took.append(time.perf_counter() - began)
        assert result.returncode == 0, result.stderr
        assert f"{PAGES * FENCES} snippets declared, 0 executed now" in result.stderr
    assert min(took) < REBUILD_SECONDS
