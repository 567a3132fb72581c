"""`measured build` and `measured serve`: MkDocs, with settings that only our hooks know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from measured import settings
from measured.settings import Settings


def command(name: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command line of MkDocs' own command `name`, in this interpreter."""
    return [sys.executable, "-m", "mkdocs", name, *arguments]


def become(line: Sequence[str], asked: Settings) -> NoReturn:
    """Run a command line in place of this process, so that signals and status are its own."""
    environment = {**os.environ, **settings.variables(asked)}
    if os.name == "posix":
        os.execve(line[0], line, environment)
    # Elsewhere the new process would not be waited for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(subprocess.call(line, env=environment))
