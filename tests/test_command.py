"""`measured audit`: each exit code by a real script, and the script notices nothing.

Scripts that compile use backends of their own, so that only the test of random operations waits
for a C++ compiler.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from measured import __main__, machine, script
from measured.record import Call, Difference

AGREES = """
    import torch

    @torch.compile(backend="eager")
    def f(x):
        return x.sin()

    f(torch.ones(4))
"""

DIVERGES = """
    import sys
    import torch

    def backend(graph, inputs):
        return lambda *args: [out + 1e-2 for out in graph(*args)]

    @torch.compile(backend=backend)
    def f(x):
        return x.sin()

    f(torch.ones(3, 4))
    print("the script's own line")
    sys.exit(len(sys.argv) > 1)
"""

REFUSES = """
    import torch

    @torch.compile(fullgraph=True, backend="eager")
    def f(x):
        print("no")
        return x + 1

    try:
        f(torch.ones(2))
    except torch._dynamo.exc.Unsupported as error:
        {what}
"""

DROPS = """
    import torch

    torch.manual_seed(0)
    drop = torch.compile(torch.nn.functional.dropout)
    print(drop(torch.ones(64)).shape, input())
"""


def write(folder: Path, source: str) -> str:
    (folder / "program.py").write_text(textwrap.dedent(source))
    return "program.py"


def measured(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, stdin: object = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "measured", *arguments],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=stdin or subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def audit(folder: Path, source: str, *options: str, **more):
    return measured(folder, "audit", *options, write(folder, source), **more)


def call(verdict: str, **more) -> Call:
    differences = [Difference("value", "result", "")] if verdict == "diverges" else []
    return Call(0, "f", 0, 1, verdict, differences, 0.0, "equal", **more)


def run_of(*verdicts: str, status: int | None = 0, **more) -> script.Run:
    facts = {"stopped": "", "drew": False, "fallback_random": False, **more}
    calls = [call(verdict) for verdict in verdicts]
    return script.Run(status=status, calls=calls, calls_total=len(calls), **facts)


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (run_of("agrees"), 0),
        (run_of("agrees", "refused", "ran eager", "not comparable"), 0),
        (run_of("agrees", "diverges", "audit failed", status=1), 1),
        (run_of("diverges", status=None, stopped="timeout"), 1),
        (run_of("diverges", status=-2, stopped="interrupted"), 1),
        (run_of("agrees", status=None, stopped="timeout"), 124),
        (run_of("agrees", status=-2, stopped="interrupted"), 130),
        (run_of("agrees", "refused", status=1, died_of_refusal=True), 1),
        (run_of("agrees", "refused", status=None, stopped="timeout"), 124),
        (run_of("agrees", "refused", status=1), 2),
        (run_of("agrees", status=1), 2),
        (run_of("agrees", "audit failed", status=1), 2),
        (run_of("agrees", status=-11), 2),
        (run_of("agrees", "audit failed"), 3),
        (run_of(), 3),
        (run_of("ran eager"), 3),
        (run_of("not comparable"), 3),
        (run_of("refused"), 3),
    ],
)
def test_the_order_of_verdicts(run, code):
    assert script.judge(run).exit_code == code


def test_what_is_no_agreement_is_told():
    run = run_of("agrees", "audit failed", "refused", "not comparable")
    run.calls[1:] = [
        call("audit failed", detail="KeyError: 1"),
        call("refused", detail="Unsupported: no"),
    ]
    told = script.text(script.Outcome("s.py", [], run, 1))
    assert "- the audit failed on call 1 of f: KeyError: 1" in told
    assert "- call 1 of f was refused by the compiler: Unsupported: no" in told
    assert "no verdict (exit code 3): the audit itself failed on 1 audited call" in told


def test_what_was_left_out_of_calls_that_agree_is_told():
    run = run_of("agrees", "agrees", "agrees")
    run.calls[1:] = [call("agrees", detail="its gradients were not compared")] * 2
    told = script.text(script.Outcome("s.py", [], run, 1))
    assert "- 2 of the agreeing calls of f: its gradients were not compared" in told


@pytest.mark.parametrize(
    ("run", "undecided"),
    [
        (run_of("diverges", drew=True), True),
        (run_of("not comparable", drew=True), True),
        (run_of("agrees", drew=True), False),
        (run_of("diverges"), False),
        (run_of("diverges", drew=True, fallback_random=True), False),
        (run_of("diverges", drew=True, stopped="interrupted", status=-2), False),
    ],
)
def test_only_a_difference_after_a_random_operation_asks_for_a_second_run(run, undecided):
    assert script.is_undecided(run) is undecided


@pytest.mark.parametrize(
    ("second", "counts"),
    [
        (run_of("agrees"), True),
        (run_of("diverges", status=1), True),
        (run_of("agrees", status=1), False),
        (run_of("agrees", status=None, stopped="timeout"), False),
        (run_of(), False),
    ],
)
def test_a_second_run_that_falls_short_excuses_nothing(second, counts):
    assert script.replaces(second, run_of("diverges", drew=True)) is counts


def test_agreement_is_0(tmp_path):
    result = audit(tmp_path, AGREES)
    assert result.returncode == 0, result.stderr
    assert "1 of 1 compiled calls checked" in result.stderr
    assert result.stderr.endswith("agrees (exit code 0): 1 checked call agrees with eager\n")
    assert result.stdout == ""


def test_a_divergence_is_1_and_is_named_with_its_sizes(tmp_path):
    result = audit(tmp_path, DIVERGES)
    assert result.returncode == 1
    assert result.stdout == "the script's own line\n"
    assert "- call 1 of f: result diverges from eager (value): 12 of 12" in result.stderr
    assert "[torch.float32 (3, 4)]" in result.stderr
    assert "largest difference: 0.01 absolute" in result.stderr
    assert result.stderr.endswith("1 of 1 checked calls diverges from eager\n")


def test_json_names_the_difference_and_leaves_standard_output_alone(tmp_path):
    program = write(tmp_path, DIVERGES)
    result = measured(tmp_path, "audit", "--json", program, "--json")
    told = json.loads(result.stdout)
    assert result.returncode == 1  # A divergence beats the script's own status.
    assert "the script's own line" in result.stderr
    expected = {
        "schema": 1, "script": "program.py", "arguments": ["--json"], "verdict": "diverges",
        "exit_code": 1, "script_status": 1, "runs": 1, "calls_checked": 1, "calls_total": 1,
        "fallback_random": False, "random_operations": False,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    assert told["torch"] == machine.torch_version()
    (found,) = told["calls"]
    (difference,) = found["differences"]
    assert (found["callable"], difference["kind"], difference["path"]) == ("f", "value", "result")
    (divergence,) = told["divergences"]
    assert divergence["headline"].startswith("call 1 of f: result diverges from eager")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ValueError('mine')", "ended with status 1"),
        ("import sys; sys.exit(3)", "ended with status 3"),
        ("import os; os.kill(os.getpid(), 11)", "died of SIGSEGV"),
        ("import torch; torch.compile(lambda x: x / [], backend='eager')(torch.ones(2))", "1;"),
    ],
)
def test_a_script_that_fails_by_itself_is_2(tmp_path, source, reason):
    result = audit(tmp_path, source)
    assert result.returncode == 2, result.stderr
    assert reason in result.stderr.splitlines()[-1]
    assert "mine" not in source or "ValueError: mine" in result.stderr


def test_nothing_compiled_is_3(tmp_path):
    result = audit(tmp_path, "print('hello')")
    assert (result.returncode, result.stdout) == (3, "hello\n")
    assert "no compiled callable was called" in result.stderr


def test_nothing_compared_is_3(tmp_path):
    result = audit(tmp_path, REFUSES.format(what="pass"))
    assert result.returncode == 3
    assert "- call 1 of f was refused by the compiler: Unsupported" in result.stderr
    assert result.stderr.endswith("no call could be compared with eager: 1 refused\n")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("raise", 1),
        ("raise RuntimeError('wrapped') from error", 1),
        ("print('caught'); raise SystemExit(5)", 2),
    ],
)
def test_a_script_that_the_compiler_ends_has_not_failed_by_itself(tmp_path, what, code):
    result = audit(tmp_path, REFUSES.format(what=what))
    assert result.returncode == code, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("refused (exit code 1)" if code == 1 else "failed (exit code 2)")


def test_the_script_runs_as_python_would_run_it(tmp_path):
    (tmp_path / "data").write_text("from a file")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "theirs.py").touch()
    source = """
        import json, os, pickle, sys
        import theirs

        class C: pass

        assert type(pickle.loads(pickle.dumps(C()))) is C
        facts = sys.argv, os.getcwd(), os.environ["MINE"], __name__, __file__, sys.path[0], input()
        print(json.dumps(facts))
    """
    program = write(tmp_path, source)
    with open(tmp_path / "data") as stdin:
        result = measured(
            tmp_path, "audit", program, "a b", "--once", "--", "-x",
            env={"MINE": "kept", "PYTHONPATH": str(tmp_path / "library")}, stdin=stdin,
        )  # fmt: skip
    assert json.loads(result.stdout) == [
        ["program.py", "a b", "--once", "--", "-x"],
        *(str(tmp_path), "kept", "__main__", str(tmp_path / "program.py"), str(tmp_path)),
        "from a file",
    ], result.stderr


def test_python_processes_of_the_script_are_audited(tmp_path):
    (tmp_path / "worker.py").write_text(textwrap.dedent(DIVERGES))
    result = audit(
        tmp_path, "import subprocess, sys; subprocess.run([sys.executable, 'worker.py'])"
    )
    assert result.returncode == 1
    assert "call 1 of f: result diverges" in result.stderr


def test_an_audit_within_a_run_of_this_site_reports_to_itself(tmp_path):
    outer = {"MEASURED_JOB": str(tmp_path / "outer"), "PYTHONPATH": "/nowhere"}
    kept = script.environment(tmp_path / "job", "mark", outer)
    assert kept["MEASURED_JOB"] == str(tmp_path / "job")
    assert kept["PYTHONPATH"].endswith(os.pathsep + "/nowhere")
    assert script.environment(tmp_path / "job", "mark", kept) == kept


def test_a_random_operation_is_audited_with_eager_s_numbers(tmp_path):
    program = write(tmp_path, DROPS)
    (tmp_path / "data").write_text("read again")
    with open(tmp_path / "data") as stdin:
        # Now the graph is in Inductor's cache, where it would say nothing of its draws.
        subprocess.run(
            [sys.executable, program], cwd=tmp_path, stdin=stdin, capture_output=True, check=True
        )
        stdin.seek(0)
        result = measured(tmp_path, "audit", program, stdin=stdin)
    line = "torch.Size([64]) read again\n"
    assert result.returncode == 0, result.stderr
    assert result.stdout == line
    assert line in result.stderr
    assert "- the script ran twice: a random operation was compiled" in result.stderr


def outcome_of(monkeypatch, first: script.Run, second: script.Run, **options):
    """Audit with runs that are made up; the outcome, and how many times the script ran."""
    runs = []

    def run(command, *, fallback_random, **_):
        runs.append(fallback_random)
        made = second if fallback_random else first
        return msgspec.structs.replace(made, fallback_random=fallback_random)

    monkeypatch.setattr(script, "run", run)
    return script.audit("s.py", [], **options), runs


def test_once_forbids_the_second_run_and_says_what_that_leaves_open(monkeypatch):
    first = run_of("diverges", drew=True)
    outcome, runs = outcome_of(monkeypatch, first, run_of("agrees"), once=True)
    assert (outcome.verdict.exit_code, runs) == (1, [False])
    assert "may come from that alone; run without --once" in script.text(outcome)
    assert json.loads(script.as_json(outcome))["random_operations"] is True


def test_fallback_random_runs_with_eager_s_numbers_at_once(monkeypatch):
    first = run_of("diverges", drew=True)
    outcome, runs = outcome_of(monkeypatch, first, run_of("agrees"), fallback_random=True)
    assert (outcome.verdict.exit_code, runs) == (0, [True])


def test_a_second_run_that_falls_short_is_told(monkeypatch):
    first = run_of("diverges", drew=True)
    outcome, runs = outcome_of(monkeypatch, first, run_of("agrees", status=1))
    assert (outcome.verdict.exit_code, runs) == (1, [False, True])
    assert "did not get as far as the first" in script.text(outcome)


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "missing.py"],
        ["audit"],
        ["audit", "--mistyped", "program.py"],
        ["audit", "--timeout", "0", "program.py"],
        ["mistyped"],
        [],
    ],
)
def test_a_mistyped_command_is_64(tmp_path, arguments, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "print('ran')")
    monkeypatch.setattr(sys, "argv", ["measured", *arguments])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 64
    assert "Usage: measured" in capsys.readouterr().err


def test_an_error_of_the_command_s_own_is_70(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["measured", "audit", str(tmp_path / write(tmp_path, ""))])
    monkeypatch.setattr(script, "audit", lambda *_, **__: 1 / 0)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_help_lists_the_exit_codes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["measured", "audit", "--help"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    listed = capsys.readouterr().out.partition("Exit codes")[2].splitlines()
    codes = {line.split()[0] for line in listed if line.strip()[:1].isdigit()}
    assert (ended.value.code, codes) == (0, {"0", "1", "2", "3", "64", "70", "124", "130"})


SLEEPS = """
    import subprocess, sys
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleeper, start_new_session=True)
    open("pid", "w").write(str(child.pid))
"""


def has_ended(pid: int) -> bool:
    deadline = time.time() + 10
    while time.time() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_a_script_that_hangs_is_ended_with_all_it_started(tmp_path):
    result = audit(tmp_path, f"{SLEEPS}\n    child.wait()", "--timeout", "3")
    assert result.returncode == 124
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_what_the_script_leaves_running_is_ended(tmp_path):
    assert audit(tmp_path, SLEEPS).returncode == 3
    assert has_ended(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(
    ("end", "handles", "code"),
    [
        (lambda child: os.killpg(child.pid, signal.SIGINT), False, 130),  # Ctrl-C in a terminal.
        (lambda child: os.killpg(child.pid, signal.SIGINT), True, 3),
        (lambda child: child.terminate(), False, 130),
    ],
    ids=["interrupted", "interrupted and handled", "terminated"],
)
def test_ctrl_c_and_termination_end_the_script(tmp_path, end, handles, code):
    caught = "except KeyboardInterrupt: print('saved')" if handles else "finally: pass"
    waits = "print('ready', flush=True); child.wait()"
    program = write(tmp_path, f"{SLEEPS}\n    try: {waits}\n    {caught}")
    child = subprocess.Popen(
        [sys.executable, "-m", "measured", "audit", program],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    end(child)
    output, errors = child.communicate(timeout=120)
    assert child.returncode == code, errors
    assert ("saved" in output) is handles
    assert has_ended(int((tmp_path / "pid").read_text()))
