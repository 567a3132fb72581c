"""The same programs as three MkDocs sites, one for each way of running them.

Each site has a page per program, with its source and its output, and caches of its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

HOOK = Path(__file__).parents[1] / "site.py"
"""What makes a site one of this project's."""

EDIT = "# Edited.\n"
"""What an author adds to a program: other text, the same work."""

_INCLUDE = '--8<-- "{name}.py"'

_CALL = """
import subprocess
import sys

done = subprocess.run(
    [sys.executable, {path!r}],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    check=True,
)
print(done.stdout, end="")
"""


class Contender(msgspec.Struct, frozen=True):
    """A way of building pages from programs."""

    key: str
    """What its numbers are called in a record."""
    name: str
    checked: bool
    """Whether compiled calls are compared with eager."""
    isolated: bool
    """Whether no program meets what another left in its process."""
    block: Callable[[str, str, Path], str]
    """Markdown for a program, from its name, the options of its fence and its file."""
    config: dict[str, Any] = {}
    """What it adds to the configuration of MkDocs."""


def _fence(body: str, options: str = "") -> str:
    header = f"python {options}".strip()
    return f"```{header}\n{body.strip()}\n```\n"


def _in_process(name: str, options: str, file: Path) -> str:
    # Options that are not its own, markdown-exec would pass on to the fence that it shows.
    return _fence(_INCLUDE.format(name=name), 'exec="on" source="above" result="text"')


def _process_each(name: str, options: str, file: Path) -> str:
    call = _fence(_CALL.format(path=str(file)), 'exec="on" result="text"')
    return _fence(_INCLUDE.format(name=name)) + "\n" + call


def _measured(name: str, options: str, file: Path) -> str:
    return _fence(_INCLUDE.format(name=name), options)


MARKDOWN_EXEC = Contender("markdown_exec", "markdown-exec", False, False, _in_process)
SUBPROCESS = Contender("subprocess", "a process each", False, True, _process_each)
THIS_BUILD = Contender("this_build", "this build", True, True, _measured, {"hooks": [str(HOOK)]})

CONTENDERS = (MARKDOWN_EXEC, SUBPROCESS, THIS_BUILD)


def config(contender: Contender) -> dict[str, Any]:
    """MkDocs' configuration: what the three have in common, and what one adds."""
    return {
        "site_name": contender.name,
        "theme": {"name": "material", "font": False},
        "plugins": ["search", {"markdown-exec": {"languages": ["python", "py"]}}],
        "markdown_extensions": [
            "attr_list",
            "md_in_html",
            "tables",
            "pymdownx.highlight",
            {"pymdownx.snippets": {"base_path": ["snippets"], "check_paths": True}},
            "pymdownx.superfences",
        ],
        **contender.config,
    }


def options_of(name: str, pages: Iterable[str]) -> str:
    """Options of the fence that includes a program on one of these pages: what it must show there
    decides whether the build passes. `exec="on"` where no page has it."""
    include = re.escape(_INCLUDE.format(name=name))
    fence = re.compile(rf'^[\s>]*`{{3,}}python (?P<options>exec="on".*)\n[\s>]*{include}', re.M)
    found = (fence.search(page) for page in pages)
    return next((match["options"].strip() for match in found if match), 'exec="on"')


def make(contender: Contender, project: Path, names: Iterable[str], site: Path) -> None:
    """Write the site at `site`: a page for each of these programs of a project."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((project / "docs").rglob("*.md"))]
    (site / "docs").mkdir(parents=True)
    for name in names:
        file = program(site, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(program(project, name), file)
        block = contender.block(name, options_of(name, pages), file)
        page = site / "docs" / f"{name.replace('/', '-')}.md"
        page.write_text(f"# {name}\n\n{block}", encoding="utf-8")
    # JSON is YAML.
    (site / "mkdocs.yml").write_text(json.dumps(config(contender), indent=1), encoding="utf-8")


def program(project: Path, name: str) -> Path:
    """The file of a program of a project or site."""
    return project / "snippets" / f"{name}.py"


def edit(site: Path, name: str) -> None:
    """Change a program, as its author would."""
    with program(site, name).open("a", encoding="utf-8") as file:
        file.write(f"\n{EDIT}")


def environment(site: Path) -> dict[str, str]:
    """Of a build of the site: every cache below `site`, empty at first. So is the measurement lock,
    which lies in TMPDIR: whoever times a build can hold the machine's."""
    caches = {
        "TORCHINDUCTOR_CACHE_DIR": site / "caches" / "inductor",
        "TMPDIR": site / "caches" / "tmp",
        "MEASURED_CACHE": site / "caches" / "measured",
    }
    for folder in caches.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        **{name: str(folder) for name, folder in caches.items()},
        "NO_MKDOCS_2_WARNING": "1",
    }
