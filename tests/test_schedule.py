"""Measurements alone, audits beside each other, and what an interrupt leaves."""

from __future__ import annotations

import textwrap
import threading
from pathlib import Path

import pytest

from measured import process, progress, schedule, warm
from measured.record import RunRecord
from measured.snippets import Expectations, Place, Snippet


def job(name: str, source: str = "x = 1", **expects) -> schedule.Job:
    expectations = Expectations(**{"fresh": True, "timeout": 60.0, **expects})
    snippet = Snippet(f"part/{name}", textwrap.dedent(source), Place("p.md", 1), expectations, {})
    return snippet, name * 64


class Build:
    """Keeps what it is given, as a build does, and a list of all that happened."""

    def __init__(self, cache: Path, known: dict[str, RunRecord] | None = None) -> None:
        self.cache = cache
        self.known = known or {}
        self.kept: dict[str, RunRecord] = {}
        self.steps: list[tuple[str, str]] = []

    def execute(self, *jobs: schedule.Job) -> None:
        schedule.execute(
            jobs, cache=self.cache, load=self.known.get, keep=self.keep, tell=self.tell
        )

    def keep(self, snippet: Snippet, made: RunRecord) -> None:
        self.kept[snippet.name] = made

    def tell(self, step: progress.Step) -> None:
        self.steps.append((step.doing, step.name.removeprefix("part/")))


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(schedule, "_cores", lambda: 2)


def test_no_audit_runs_beside_a_measurement(tmp_path, monkeypatch, two_cores):
    running: list[str] = []
    seen: list[tuple[str, ...]] = []
    lock, both = threading.Lock(), threading.Barrier(2)
    run = schedule.children.run

    def watched(snippet, mode, *args, **kwargs):
        with lock:
            running.append(mode)
            seen.append(tuple(running))
        if mode == "audit":
            both.wait(60)  # Two audits are under way at the same time, or this breaks.
        try:
            return run(snippet, mode, *args, **kwargs)
        finally:
            with lock:
                running.remove(mode)

    monkeypatch.setattr(schedule.children, "run", watched)
    monkeypatch.setattr(warm, "is_possible", lambda: False)
    build = Build(tmp_path)
    build.execute(*(job(name) for name in "abcdef"))
    assert set(seen) == {("observe",), ("audit",), ("audit", "audit")}
    assert [name for doing, name in build.steps if doing == "observing"] == list("abcdef")
    assert build.kept.keys() == {f"part/{name}" for name in "abcdef"}


def test_what_another_build_ran_meanwhile_is_not_run_again(tmp_path, two_cores):
    first = Build(tmp_path)
    first.execute(job("a"))
    second = Build(tmp_path, {"a" * 64: first.kept["part/a"]})
    second.execute(job("a"), job("b"))
    assert second.kept.keys() == {"part/b"}
    assert ("observing", "a") not in second.steps


def test_audits_are_forked_where_there_are_several(tmp_path, two_cores):
    if not warm.is_possible():
        pytest.skip("a process that has imported torch can not be forked here")
    source = "import torch\ntorch.compile(lambda x: x.sin(), backend='eager')(torch.ones(3))"
    alone, several = Build(tmp_path), Build(tmp_path)
    alone.execute(job("a", source))
    several.execute(job("a", source), job("b", source))
    assert [made.audit.forked for made in alone.kept.values()] == [False]
    assert [made.audit.forked for made in several.kept.values()] == [True, True]


def test_an_interrupt_keeps_what_is_finished_and_ends_the_rest(tmp_path, monkeypatch, two_cores):
    monkeypatch.setattr(process, "stopping", threading.Event())
    build = Build(tmp_path)

    def keep(snippet: Snippet, made: RunRecord) -> None:
        build.kept[snippet.name] = made
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "keep", keep)
    # Long when it is audited, and not before.
    long = "import os, time\nif os.environ.get('OMP_WAIT_POLICY') == 'PASSIVE': time.sleep(500)"
    with pytest.raises(KeyboardInterrupt):
        build.execute(job("a"), job("b", long, timeout=600.0))
    assert build.kept.keys() == {"part/a"}
    assert process.stopping.is_set()
    with pytest.raises(process.Stopped):
        build.execute(job("c"))
