"""Keeps what was read of each page while a process lives: an edit changes one page of many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measured import pages
from measured.pages import Page


class Reader:
    """`pages.read_page`, which converts a page again only if something it depends on changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[Any, ...], Page]] = {}

    def read(
        self,
        path: str,
        text: str,
        first_line: int,
        folder: Path,
        extensions: list[Any],
        configs: dict[str, dict[str, Any]],
    ) -> Page:
        """See `pages.read_page`."""
        # Extensions and their options may be any objects: what shows as another is another.
        named = [e for e in extensions if not isinstance(e, pages.Values)]
        depends = (text, first_line, folder, repr(named), repr(configs))
        kept = self._kept.get(path)
        if kept is None or kept[0] != depends or not _is_current(kept[1], folder):
            page = pages.read_page(path, text, first_line, folder, extensions, configs)
            kept = self._kept[path] = (depends, page)
        return kept[1]


def _is_current(page: Page, folder: Path) -> bool:
    """Whether the files that a page includes are what they were."""
    if page.problems:
        return False  # A file that was missing may be there now.
    for snippet in page.snippets:
        if "#" not in snippet.name:
            try:
                text = (folder / f"{snippet.name}.py").read_text(encoding="utf-8")
            except OSError:
                return False
            if text.rstrip("\n") != snippet.source:
                return False
    return True
