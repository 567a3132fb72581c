"""Audited children of a process that has imported torch: as a new interpreter would be, sooner."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from measured import children, run, toolchain, warm
from measured.record import Process, RunRecord
from measured.snippets import Expectations, Place, Snippet

pytestmark = pytest.mark.skipif(
    not warm.is_possible(), reason="a process that has imported torch can not be forked here"
)

COMPILES = """
    import os, sys, tempfile
    import torch

    @torch.compile(backend="eager")
    def f(x):
        return x.sin()

    print(f(torch.ones(3)).shape, __name__, __file__, sys.argv, sys.path[0], os.getcwd())
    print(tempfile.gettempdir(), sorted(os.path.expanduser("~/x").split("/"))[-1])
    ones = 1
"""

WRONG = """
    import torch

    def backend(graph, inputs):
        return lambda *args: [out + 1e-2 for out in graph(*args)]

    torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(3))
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[warm.Parent]:
    with warm.Parent(seed=0) as parent:
        assert parent.start()
        yield parent


def ran(source: str, folder: Path, parent: warm.Parent | None, **expects) -> RunRecord:
    expectations = Expectations(fresh=True, **{"timeout": 60.0, **expects})
    snippet = Snippet("part/name", textwrap.dedent(source), Place("p.md", 1), expectations, {})
    with run.measurement_lock():
        return run.run(snippet, "key", folder / "cache", parent)


def forked(source: str, folder: Path, parent: warm.Parent, timeout: float = 30.0) -> Process:
    """The audited child alone."""
    snippet = Snippet("part/name", textwrap.dedent(source), Place("p.md", 1), Expectations(), {})
    toolchain.prepare(folder, None)
    return children.run(snippet, "audit", folder, timeout, parent=parent)[0]


def test_a_forked_child_says_what_a_new_interpreter_says(parent, tmp_path):
    for number in range(2):
        made = ran(COMPILES, tmp_path, parent)
        assert (made.audit.forked, made.audit.disturbed) == (True, "")
        assert made.audit.process.output == made.observed.output
        assert [(call.verdict, call.number) for call in made.audit.calls] == [("agrees", 1)], number
        assert made.audit.calls_total == 1


def test_a_divergence_is_found_in_a_forked_child(parent, tmp_path):
    made = ran(WRONG, tmp_path, parent)
    assert made.audit.forked
    assert [call.verdict for call in made.audit.calls] == ["diverges"]


def test_it_takes_less_time(parent, tmp_path):
    made = ran(COMPILES, tmp_path, parent)
    assert made.audit.process.wall_seconds < made.observed.wall_seconds
    assert made.audit.process.peak_memory_bytes > 0


@pytest.mark.parametrize(
    "setting",
    [
        "import os; os.environ['TORCH_LOGS'] = 'graph_code'",
        "import torch; torch.set_num_threads(1)",
        "import sys; early = 'torch' in sys.modules",
    ],
)
def test_a_program_that_sets_what_is_read_at_import_gets_a_new_interpreter(
    parent, tmp_path, setting
):
    made = ran(f"{setting}\n{textwrap.dedent(COMPILES)}", tmp_path, parent)
    assert (made.audit.forked, made.audit.disturbed) == (False, "")


def test_what_a_warm_start_changes_is_run_again_in_a_new_interpreter(parent, tmp_path):
    source = """
        import sys
        print(len(vars(sys)["modules"]) > 500)
        import torch
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    """
    made = ran(source, tmp_path, parent)
    assert (made.audit.forked, made.audit.disturbed) == (False, "")


@pytest.mark.parametrize(
    ("source", "ending", "detail"),
    [
        ("while True: pass", "timeout", "still running after 4 s"),
        ("import os; os._exit(3)", "ended early", "left with status 3 before its last line"),
        ("import os; os.abort()", "signal", "SIGABRT"),
        ("raise KeyError(1)", "raised", "KeyError"),
        ("import sys; sys.exit(4)", "ended early", "sys.exit(4) before its last line"),
        ("while True: print('x' * 10_000)", "output limit", "printed more than 1 MiB"),
        ("print('fine')", "finished", ""),
    ],
)
def test_however_a_child_ends_the_next_one_is_born(parent, tmp_path, source, ending, detail):
    ended = forked(source, tmp_path, parent, timeout=4.0)
    assert (ended.ending, ended.detail) == (ending, detail)
    following = forked("print('born')", tmp_path, parent)
    assert (following.ending, following.output) == ("finished", "born\n")


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_nothing_that_a_child_started_outlives_it(parent, tmp_path):
    source = f"""
        import os, time

        for session in (False, True):
            if os.fork() == 0:
                if session:
                    os.setsid()
                open({str(tmp_path)!r} + f"/pid-{{session}}", "w").write(str(os.getpid()))
                time.sleep(600)
        while not all(os.path.exists({str(tmp_path)!r} + f"/pid-{{s}}") for s in (False, True)):
            time.sleep(0.01)
        time.sleep(0.1)
    """
    assert forked(source, tmp_path, parent).ending == "finished"
    for session in (False, True):
        pid = int((tmp_path / f"pid-{session}").read_text())
        deadline = time.monotonic() + 5  # A killed process takes a moment to be gone.
        while is_alive(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_child_that_kills_its_parent_costs_nobody_a_verdict(tmp_path):
    with warm.Parent(seed=0) as parent:
        assert parent.start()
        ended = forked("import os; os.kill(os.getppid(), 9)", tmp_path, parent)
        assert (ended.ending, ended.detail) == ("signal", "SIGKILL")
        assert not parent.start()
        made = ran(COMPILES, tmp_path, parent)
        assert (made.audit.forked, made.audit.disturbed) == (False, "")


def test_it_forks_from_a_single_thread_and_ends_with_the_build(monkeypatch):
    # Or there are those of a BLAS, which sees to them when its process forks.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with warm.Parent(seed=0) as parent:
        assert parent.start()
        process = psutil.Process(parent._process.pid)
        assert process.num_threads() == 1
        folder = parent.events.parent
    assert not process.is_running()
    assert not folder.exists()


def test_it_needs_no_runner_to_end():
    parent = warm.Parent(seed=0)
    assert parent.start()
    parent._control.close()
    assert parent._process.wait(30) == 0
    parent.__exit__()
