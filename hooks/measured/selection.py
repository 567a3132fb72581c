"""`--only PAGE`: which pages are built, and what is left of the navigation. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from measured.snippets import Mistake

_NEAR = 5
"""How many names of pages an unknown one is answered with."""


def chosen(asked: Iterable[str], pages: Collection[str], docs: str) -> frozenset[str]:
    """The pages that `asked` names: below the docs folder, or with its name `docs` before them.

    All of `pages` if none is asked for. Raises `Mistake`, with near names, for an unknown page.

    >>> sorted(chosen(["docs/a.md", "b.md"], ["a.md", "b.md", "c.md"], "docs"))
    ['a.md', 'b.md']
    """
    found = set()
    for typed in asked:
        path = typed.replace("\\", "/").removeprefix("./")
        names = [name for name in (path, path.removeprefix(f"{docs}/")) if name in pages]
        if not names:
            raise Mistake(f"there is no page {typed}; {_near(path, pages)}")
        found.add(names[0])
    return frozenset(found or pages)


def _near(path: str, pages: Collection[str]) -> str:
    # What was typed may be a part of a path, or a path with a slip of the pen.
    parts = [page for page in sorted(pages) if path.removesuffix(".md") in page]
    alike = difflib.get_close_matches(path, pages, n=_NEAR, cutoff=0.4)
    near = list(dict.fromkeys([*parts, *alike]))[:_NEAR]
    return f"near it: {', '.join(near)}" if near else f"there are: {', '.join(sorted(pages))}"


def navigation(nav: Any, left_out: Collection[str]) -> Any:
    """The `nav` of mkdocs.yml without these pages, and without sections that held nothing else.

    >>> navigation([{"Home": "a.md"}, {"Part": [{"B": "b.md"}]}, "c.md"], {"b.md", "c.md"})
    [{'Home': 'a.md'}]
    """
    if isinstance(nav, dict):
        kept = {title: navigation(item, left_out) for title, item in nav.items()}
        return {title: item for title, item in kept.items() if item}
    if isinstance(nav, list):
        return [item for item in (navigation(item, left_out) for item in nav) if item]
    return None if nav in left_out else nav
