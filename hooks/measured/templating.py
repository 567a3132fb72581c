"""Templates of this package, read in one way."""

from __future__ import annotations

from typing import Any

import jinja2


def environment(**options: Any) -> jinja2.Environment:
    """Finds the templates; a name that a template does not know is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("measured"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        **options,
    )
