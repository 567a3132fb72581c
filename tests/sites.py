"""Small sites for tests, built with MkDocs as a user builds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TEMPLATE = Path(__file__).parent / "site" / "mkdocs.yml"
ROOT = Path(__file__).parent.parent


def environment(cache: Path) -> dict[str, str]:
    """For a build with a cache of its own."""
    return {
        **os.environ,
        "MEASURED_CACHE": str(cache),
        "NO_MKDOCS_2_WARNING": "1",
        "COLUMNS": "200",
    }


def mkdocs(
    site: Path, cache: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run MkDocs on a site as a user would, with a cache of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        cwd=site,
        env=environment(cache) | (env or {}),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def page(*fences: tuple[str, str], text: str = "") -> str:
    """A page with an inline fence for each (options, code)."""
    blocks = [
        f'```python exec="on" fresh="yes" {options}\n{code.strip()}\n```'
        for options, code in fences
    ]
    return "---\ntitle: T\n---\n\n# T\n\n" + text + "\n\n" + "\n\n".join(blocks) + "\n"


def make_site(
    folder: Path, pages: dict[str, str], snippets: dict[str, str] | None = None, extra: str = ""
) -> Path:
    """A site of these pages and of these files in snippets/part; `extra` ends its mkdocs.yml."""
    (folder / "docs").mkdir(parents=True)
    (folder / "snippets" / "part").mkdir(parents=True)
    config = TEMPLATE.read_text().replace("../../hooks/site.py", str(ROOT / "hooks" / "site.py"))
    (folder / "mkdocs.yml").write_text(config + extra)
    for name, text in pages.items():
        path = folder / "docs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for name, text in (snippets or {}).items():
        (folder / "snippets" / "part" / name).write_text(text.lstrip())
    return folder
