"""Children: whatever a snippet does costs it one clear ending, and nothing stays behind."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from measured import children, process, run
from measured.snippets import Expectations, Place, Snippet


def child(source: str, folder: Path, *, timeout: float = 30.0, limit: int = 1 << 16):
    (folder / "program.py").write_text(textwrap.dedent(source))
    return process.run(
        ["program.py"],
        folder=folder,
        env=process.environment(folder, {}),
        timeout_seconds=timeout,
        output_bytes=limit,
    )


def test_output_is_in_the_order_of_writing_whoever_writes(tmp_path):
    outcome = child(
        """
        import os, sys
        print("one")
        print("two", file=sys.stderr)
        os.write(1, b"three\\n")
        os.system("echo four")
        """,
        tmp_path,
    )
    assert outcome.output == b"one\ntwo\nthree\nfour\n"
    assert outcome.status == 0


def test_a_program_that_hangs_is_ended(tmp_path):
    assert child("while True: pass", tmp_path, timeout=1).stopped == "timeout"


def test_a_program_that_hangs_and_talks_is_ended(tmp_path):
    outcome = child(
        "import time\nwhile True: print('.', end='', flush=True); time.sleep(0.01)",
        tmp_path,
        timeout=1,
    )
    assert outcome.stopped == "timeout"


def test_a_flood_of_output_is_ended_and_cut(tmp_path):
    outcome = child("while True: print('x' * 10_000)", tmp_path)
    assert outcome.stopped == "output limit"
    assert len(outcome.output) == 1 << 16


def test_closing_standard_output_is_no_end(tmp_path):
    outcome = child("import os; os.close(1); os.close(2); import time; time.sleep(0.3)", tmp_path)
    assert (outcome.stopped, outcome.status) == ("", 0)


def test_a_signal_is_a_negative_status(tmp_path):
    assert child("import os; os.abort()", tmp_path).status == -6


def test_nothing_that_it_started_outlives_it_not_even_in_another_session(tmp_path):
    child(
        """
        import subprocess, sys
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        for session in (False, True):
            process = subprocess.Popen(sleeper, start_new_session=session)
            open(f"pid-{session}", "w").write(str(process.pid))
        """,
        tmp_path,
    )
    for name in ("pid-False", "pid-True"):
        pid = int((tmp_path / name).read_text())
        deadline = time.time() + 5
        while psutil.pid_exists(pid) and time.time() < deadline:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                break
            time.sleep(0.05)
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_grandchild_that_holds_the_pipe_delays_nothing(tmp_path):
    start = time.perf_counter()
    outcome = child("import os; os.fork() or __import__('time').sleep(600)", tmp_path, timeout=300)
    assert outcome.status == 0
    assert time.perf_counter() - start < 150


def test_no_token_of_the_environment_reaches_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("TORCH_LOGS", "guards")
    outcome = child("import os; print(os.environ)", tmp_path)
    assert b"secret" not in outcome.output
    assert b"TORCH_LOGS" in outcome.output
    assert os.environ["HOME"].encode() + b"'" not in outcome.output


def test_usage_is_measured(tmp_path):
    outcome = child("x = bytearray(200 << 20); sum(range(2_000_000))", tmp_path)
    assert outcome.usage.peak_memory_bytes > 200 << 20
    assert outcome.usage.cpu_seconds > 0
    assert outcome.wall_seconds > 0


def observe(source: str, tmp_path: Path, **expects):
    """Run a snippet without the toolchain's warm-up: none of these compiles C++."""
    expectations = Expectations(fresh=True, **{"timeout": 60.0, **expects})
    snippet = Snippet("part/name", textwrap.dedent(source), Place("p.md", 1), expectations, {})
    with run.measurement_lock():
        return run.run(snippet, "key", tmp_path / "cache")


@pytest.mark.parametrize(
    ("source", "ending", "detail"),
    [
        ("x = 1", "finished", ""),
        ("import sys; sys.exit(0)", "ended early", "sys.exit(0) before its last line"),
        ("import sys; sys.exit('no')", "ended early", "sys.exit(no) before its last line"),
        ("import os; os._exit(0)", "ended early", "left with status 0 before its last line"),
        ("import os; os.kill(os.getpid(), 11)", "signal", "SIGSEGV"),
        ("raise KeyError(1)", "raised", "KeyError"),
        ("import json; json.loads('{')", "raised", "json.decoder.JSONDecodeError"),
        ("print('x' * (200 << 20))", "output limit", "printed more than 1 MiB"),
    ],
)
def test_how_a_snippet_ended(tmp_path, source, ending, detail):
    observed = observe(source, tmp_path).observed
    assert (observed.ending, observed.detail) == (ending, detail)


def test_a_snippet_that_hangs_past_its_limit(tmp_path):
    observed = observe("import time; time.sleep(600)", tmp_path, timeout=1.0).observed
    assert (observed.ending, observed.detail) == ("timeout", "still running after 1 s")


def test_a_traceback_shows_the_snippet_and_not_the_runner(tmp_path):
    output = observe("def f():\n    raise ValueError('no')\n\nf()\n", tmp_path).observed.output
    assert output == (
        "Traceback (most recent call last):\n"
        '  File "name.py", line 4, in <module>\n    f()\n'
        "  File \"name.py\", line 2, in f\n    raise ValueError('no')\n"
        "ValueError: no\n"
    )


def test_values_are_the_plain_module_level_ones(tmp_path):
    source = """
        import math
        count, ratio, name, flag = 3, 2.5, "x", True
        rows = [{"a": 1, "b": [1.5]}]
        _hidden = 1
        mixed = [object()]
    """
    assert observe(source, tmp_path).values == {
        "count": 3, "ratio": 2.5, "name": "x", "flag": True, "rows": [{"a": 1, "b": [1.5]}],
    }  # fmt: skip


def test_values_that_no_page_could_show_are_left_out(tmp_path):
    source = """
        cycle = []
        cycle.append(cycle)
        odd, nan, inf, fine = "\\ud800", float("nan"), [float("inf")], 1
        def f(x: int): ...
        assert f.__annotations__["x"] is int  # The runner's own future imports do not reach it.
    """
    made = observe(source, tmp_path)
    assert (made.observed.ending, made.values) == ("finished", {"fine": 1})


def test_a_snippet_runs_as_main_in_a_folder_of_its_own(tmp_path):
    source = """
        import os, sys, pickle
        class C: pass
        assert __name__ == "__main__" and pickle.loads(pickle.dumps(C())).__class__ is C
        print(os.listdir("."), sys.argv, __file__)
    """
    assert observe(source, tmp_path).observed.output == "['name.py'] ['name.py'] name.py\n"


def test_memory_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "MEMORY_BYTES", 1 << 30)
    assert observe("x = bytearray(2 << 30)", tmp_path).observed.detail == "MemoryError"


COMPILES = """
    import torch
    import torch._dynamo

    @torch.compile(backend="eager")
    def f(x):
        return x + 1

    for size in range(2, 5):
        f(torch.ones(size))
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch._dynamo.utils.clear_compilation_metrics()
"""


def test_the_books_lose_nothing_to_resets(tmp_path):
    made = observe(COMPILES, tmp_path, graphs=3, breaks=0)
    assert made.options == {"graphs": "3", "breaks": "0", "timeout": "60.0", "fresh": "True"}
    assert (made.books.graphs, made.books.recompiles, made.books.breaks) == (3, 0, [])
    assert (made.audit.checked, made.audit.calls_total, made.audit.disturbed) == (3, 3, "")


def test_two_hundred_compiles_are_two_hundred(tmp_path):
    source = """
        import torch
        for i in range(200):
            exec(f"def f(x): return x + {i}")
            torch.compile(f, backend="eager")(torch.ones(2))
    """
    assert observe(source, tmp_path).books.graphs == 200


def test_breaks_recompiles_and_reasons(tmp_path):
    source = """
        import torch

        @torch.compile(backend="eager")
        def f(x):
            y = x + 1
            print("hello")
            if y.sum() > 0:
                return y * 2
            return y

        f(torch.ones(2))
        f(torch.ones(3))
        f(torch.ones(3, dtype=torch.float64))
    """
    made = observe(source, tmp_path)
    assert [(b.file, b.line) for b in made.books.breaks] == [("name.py", 7), ("name.py", 8)]
    assert "print" in made.books.breaks[0].reason
    reasons = [c.recompile_reason for c in made.books.compiles if c.recompile_reason]
    assert any("size mismatch" in reason for reason in reasons)
    assert any("dtype" in reason for reason in reasons)
    assert made.books.recompiles == len(reasons)
    assert made.observed.output == "hello\n" * 3


def test_processes_that_a_snippet_starts_are_observed_and_audited(tmp_path):
    source = """
        import subprocess, sys
        code = '''
        import torch
        def backend(gm, _):
            return lambda *args: [out + 1e-2 for out in gm(*args)]
        torch.compile(lambda x: x.sin(), backend=backend)(torch.ones(3))
        '''.replace("\\n        ", "\\n")
        subprocess.run([sys.executable, "-c", code], check=True)
    """
    made = observe(source, tmp_path)
    assert made.books.graphs == 1
    assert [call.verdict for call in made.audit.calls] == ["diverges"]


def test_benchmark_measurements_are_recorded_whole(tmp_path):
    source = """
        from torch.utils.benchmark import Timer
        m = Timer("sum(range(100))", label="sum").blocked_autorange(min_run_time=0.05)
        n = len(m.times)
    """
    made = observe(source, tmp_path)
    (timing,) = made.timings
    assert (timing.label, timing.threads, timing.n) == ("sum", 1, made.values["n"])
    assert timing.minimum <= timing.median


def test_settings_made_before_torch_is_imported_have_their_effect(tmp_path):
    source = """
        import os
        os.environ["TORCH_LOGS"] = "graph_breaks"
        import torch

        @torch.compile(backend="eager")
        def f(x):
            print("hi")
            return x + 1

        f(torch.ones(2))
    """
    assert "Graph break" in observe(source, tmp_path).observed.output


def test_output_that_differs_under_the_audit_is_told(tmp_path):
    source = """
        import sys
        print("audited" if "measured.audit" in sys.modules else "observed")
    """
    disturbed = observe(source, tmp_path).audit.disturbed
    assert disturbed == "output line 1 is 'observed' when observed and 'audited' when audited"
