"""What one build was asked for beyond what MkDocs' own command line can say. Pure.

MkDocs passes no options of ours on to its hooks, so that they travel in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

ONLY, FRESH, REQUIRE_CLAIMS = "MEASURED_ONLY", "MEASURED_FRESH", "MEASURED_REQUIRE_CLAIMS"


class Settings(msgspec.Struct, frozen=True):
    """Options of `measured build` and `measured serve`."""

    only: tuple[str, ...] = ()
    """Pages to build and run, as typed; empty: all."""
    fresh: bool = False
    """Run every snippet again, whatever is stored."""
    require_claims: bool = False
    """An undecided claim fails the build."""


def read(environment: Mapping[str, str]) -> Settings:
    """The settings in an environment. CI runs everything, unless MEASURED_FRESH says otherwise.

    >>> read({"CI": "true"}).fresh, read({"CI": "true", "MEASURED_FRESH": "0"}).fresh
    (True, False)
    """
    return Settings(
        only=tuple(filter(None, environment.get(ONLY, "").split(os.pathsep))),
        fresh=_is_set(environment.get(FRESH) or environment.get("CI")),
        require_claims=_is_set(environment.get(REQUIRE_CLAIMS)),
    )


def variables(settings: Settings) -> dict[str, str]:
    """The environment in which `read` finds these settings; what is not asked for is left out, and
    decided by the environment that is there.

    >>> variables(Settings(fresh=True))
    {'MEASURED_FRESH': '1'}
    """
    given = {
        ONLY: os.pathsep.join(settings.only),
        FRESH: "1" if settings.fresh else "",
        REQUIRE_CLAIMS: "1" if settings.require_claims else "",
    }
    return {name: value for name, value in given.items() if value}


def _is_set(value: str | None) -> bool:
    return (value or "").lower() not in ("", "0", "no", "false")
