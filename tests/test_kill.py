"""A build that is killed leaves finished records and nothing else."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from measured import record
from measured.process import RUN_VARIABLE

ROOT = Path(__file__).parent.parent
SNIPPETS = 6
SECONDS = 14.0
"""About as long as the build below takes; a moment after its end is one like another."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    config = (ROOT / "tests" / "site" / "mkdocs.yml").read_text()
    config = config.replace("../../hooks/site.py", str(ROOT / "hooks" / "site.py"))
    (tmp_path / "mkdocs.yml").write_text(config)
    (tmp_path / "docs").mkdir()
    (tmp_path / "snippets").mkdir()
    fences = "\n\n".join(
        f'```python exec="on" fresh="yes" graphs="0"\nimport time\ntime.sleep(0.3)\nn = {n}\n```'
        for n in range(SNIPPETS)
    )
    (tmp_path / "docs" / "index.md").write_text(f"# T\n\n{fences}\n")
    return tmp_path


def start(site: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "MEASURED_CACHE": str(site / "cache"), "TMPDIR": str(site)}
    return subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build"],
        cwd=site, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def records(site: Path) -> dict[Path, int]:
    """The stored records, each of which is whole, and when they were written."""
    paths = sorted((site / "cache" / "records").glob("??/*.json"))
    for path in paths:
        assert record.decode(path.read_bytes()).key == path.stem
    return {path: path.stat().st_mtime_ns for path in paths}


def children_of(site: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if RUN_VARIABLE in environment and environment.get("HOME", "").startswith(str(site)):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


MOMENTS = random.Random(5).choices([n / 100 * SECONDS for n in range(100)], k=10)


@pytest.mark.parametrize(
    "moment", [pytest.param(m, marks=[] if n < 1 else [pytest.mark.nightly]) for n, m in enumerate(MOMENTS)]
)  # fmt: skip
def test_the_next_build_finishes_what_a_killed_one_left(site, moment):
    killed = start(site)
    time.sleep(moment)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    finished = records(site)
    assert start(site).wait(300) == 0
    assert json.loads((site / "site" / "report.json").read_text())["executed_now"] == (
        SNIPPETS - len(finished)
    )
    # What was finished was neither run nor written again.
    assert finished.items() <= records(site).items()
    assert len(records(site)) == SNIPPETS


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's death signal is Linux's")
def test_no_child_outlives_a_killed_build(site):
    page = site / "docs" / "index.md"
    page.write_text('# T\n\n```python exec="on" fresh="yes"\nimport time\ntime.sleep(99)\n```\n')
    killed = start(site)
    deadline = time.monotonic() + 90
    while not _sleeps(site):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    deadline = time.monotonic() + 10
    while children_of(site):
        assert time.monotonic() < deadline, [
            (process.status(), process.cmdline()) for process in children_of(site)
        ]
        time.sleep(0.1)


def _sleeps(site: Path) -> bool:
    return any("measured.program" in process.cmdline() for process in children_of(site))
