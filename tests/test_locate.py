"""Where a divergence comes from: the stage, the part of it, and a program that shows it alone."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from measured import (
    bisection,
    children,
    events,
    locate,
    machine,
    report,
    reproducer,
    run,
    script,
    stages,
)
from measured.record import (
    SCHEMA,
    Audit,
    Books,
    Call,
    Conditions,
    Difference,
    Origin,
    Process,
    RunRecord,
)
from measured.results import Results
from measured.snippets import Expectations, Place, Snippet

PARITY = Path(__file__).parent / "parity"


def difference(kind: str = "value", path: str = "result", **more) -> Difference:
    return Difference(kind, path, "1 of 2 elements differ", **more)


def call(*differences: Difference, number: int = 1, stage: str = "inductor") -> Call:
    verdict = "diverges" if differences else "agrees"
    return Call(0, "f", 0, number, verdict, list(differences), 0.0, "none", stage=stage)


def record_of(*calls: Call) -> RunRecord:
    process = Process("finished", "", 1.0, 0.5, 1 << 20, "")
    audit = Audit(process, list(calls), len(calls), False, None, "")
    return RunRecord(
        SCHEMA, "key", "a/b", "", {}, "2026-01-01T00:00:00+00:00", machine.describe(),
        process, 1, Conditions(0.0, 0.0, 0.0, 0, None), Books([], []), None, {}, [], [], audit,
    )  # fmt: skip


class Runs:
    """Runs that are made up: what is seen at which stage, and which were asked for."""

    def __init__(self, seen: dict[str, list[Call] | None], culprit: str = "lowerings") -> None:
        self.seen = seen
        self.culprit = culprit
        self.stages: list[str] = []
        self.bisected: list[str] = []

    def again(self, stage: str, seconds: float) -> list[Call] | None:
        self.stages.append(stage)
        return self.seen.get(stage, [call()])

    def bisect(self, target, stage: str, seconds: float) -> events.Bisected | None:
        self.bisected.append(target.path)
        return events.Bisected(self.culprit, "") if self.culprit else None

    def locate(self, *calls: Call) -> list[Origin]:
        found = [(one, d) for one in calls for d in one.differences]
        return list(locate.locate(found, self.again, self.bisect).values())


def test_the_first_stage_that_shows_it_is_named_and_no_later_one_runs():
    wrong = call(difference())
    runs = Runs({"aot_eager": [wrong], "aot_eager_decomp_partition": [wrong]})
    (origin,) = runs.locate(wrong)
    assert (origin.stage, origin.same) == ("aot_eager", True)
    assert runs.stages == ["eager", "aot_eager"]
    assert runs.bisected == []  # There is nothing in this stage that could be switched off.


def test_what_only_inductor_shows_is_bisected():
    wrong = call(difference())
    runs = Runs({"inductor": [wrong]})
    (origin,) = runs.locate(wrong)
    assert (origin.stage, origin.culprit) == ("inductor", "lowerings")
    assert locate.lines(origin) == [f"arises in: {stages.STAGES['inductor']}: lowerings"]


def test_of_one_call_one_difference_is_bisected():
    wrong = call(difference(path="result[0]"), difference(path="result[1]"))
    runs = Runs({"inductor": [wrong]})
    first, second = runs.locate(wrong)
    assert (runs.bisected, first.culprit, second.culprit) == (["result[0]"], "lowerings", "")
    assert "looked for at result[0] only" in locate.lines(second)[0]


def test_a_difference_of_that_name_elsewhere_counts_less_than_the_same_later():
    wrong, other = call(difference()), call(difference(path="result[1]"))
    (origin,) = Runs({"eager": [other], "inductor": [wrong]}).locate(wrong)
    assert (origin.stage, origin.same) == ("inductor", True)
    runs = Runs({"eager": [other]})
    (origin,) = runs.locate(wrong)
    assert (origin.stage, origin.same, runs.bisected) == ("eager", False, [])
    assert "of another call or place" in locate.lines(origin)[0]


def test_what_does_not_come_again_is_told_as_such():
    runs = Runs({})
    (origin,) = runs.locate(call(difference()))
    assert locate.lines(origin) == ["arises in: unknown: a second audit did not find it again"]
    assert runs.stages == list(stages.STAGES)


def test_a_backend_of_the_program_s_own_has_no_stages():
    runs = Runs({})
    (origin,) = runs.locate(call(difference(), stage=stages.OWN))
    assert "a backend of the program's own" in locate.lines(origin)[0]
    assert runs.stages == []


def test_a_backend_that_ends_earlier_is_not_run_with_later_stages():
    runs = Runs({})
    runs.locate(call(difference(), stage="aot_eager"))
    assert runs.stages == ["eager", "aot_eager"]


def test_a_run_that_takes_too_long_ends_the_search():
    runs = Runs({"aot_eager": None})
    (origin,) = runs.locate(call(difference()))
    assert locate.lines(origin) == ["arises in: unknown: not found within 240 s"]
    assert runs.stages == ["eager", "aot_eager"]


def test_no_run_starts_once_the_time_is_up(monkeypatch):
    monkeypatch.setattr(locate, "LOCATE_SECONDS", 0.0)
    runs = Runs({})
    (origin,) = runs.locate(call(difference()))
    assert (origin.detail, runs.stages) == ("not found within 0 s", [])


def test_a_bisection_that_takes_too_long_leaves_the_stage():
    wrong = call(difference())
    (origin,) = Runs({"inductor": [wrong]}, culprit="").locate(wrong)
    assert locate.lines(origin)[0].endswith("which part of it: not found within 300 s")


def test_only_what_nobody_declared_is_looked_for():
    made = record_of(call(difference(), difference("dtype", "result[1]")))

    def sought(**expects) -> list[str]:
        snippet = Snippet("a/b", "", Place("p.md", 1), Expectations(**expects), {})
        return [d.name for _, d in report.undeclared(snippet, made)]

    assert sought() == ["value", "dtype"]
    assert sought(diverges=("dtype",)) == ["value"]
    assert sought(diverges=("dtype", "value")) == sought(diverges=("rng",)) == []


def test_a_green_build_runs_nothing_more(tmp_path, monkeypatch):
    snippet = Snippet("a/b", "", Place("p.md", 1), Expectations(graphs=0), {})
    made = record_of(call())
    monkeypatch.setattr(children, "run", lambda *_, **__: pytest.fail("ran a child"))
    results = Results(tmp_path)
    results._keep(snippet, made)
    assert results.find(made.key) is made


@pytest.fixture
def at_stage(audited, monkeypatch):
    """Runs a function with a compiler that stops after a stage; gives the names it saw."""
    import torch
    from torch._dynamo import eval_frame

    def names(stage: str, function) -> set[str]:
        torch._dynamo.reset()
        before = len(audited())
        with monkeypatch.context() as patch:
            patch.setattr(eval_frame, "get_compiler_fn", eval_frame.get_compiler_fn)
            stages.stop_after(eval_frame, stage)
            function()
        return {d.name for one in audited()[before:] for d in one.differences}

    return names


def main_of(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module.main


@pytest.mark.parametrize(
    ("program", "stage"),
    [
        ("policy/branch_on_is_compiling", "eager"),
        ("diverging/counter_shared_with_local_class", "eager"),
        ("diverging/overlapping_inputs_after_separate", "aot_eager"),
        ("diverging/smooth_l1_gradient_of_nan", "aot_eager_decomp_partition"),
    ],
)
def test_a_known_difference_appears_with_its_stage_and_not_before(at_stage, program, stage):
    import torch

    if not torch.__version__.startswith("2.15"):
        pytest.skip("at which stage these differ is known of torch 2.15 only")
    main = main_of(PARITY / f"{program}.py")
    earlier = list(stages.STAGES)[: list(stages.STAGES).index(stage)]
    assert [at_stage(one, main) for one in earlier] == [set()] * len(earlier)
    assert at_stage(stage, main)


def test_a_wrong_decomposition_appears_with_the_decompositions(at_stage, monkeypatch):
    import torch
    from torch._inductor import decomposition

    wrong = {torch.ops.aten.sinc.default: lambda x: torch.ops.aten.cos.default(x)}
    table = decomposition.decompositions | wrong
    monkeypatch.setattr(decomposition, "decompositions", table)
    decomposition.fast_random_decomps.cache_clear()
    monkeypatch.setattr("torch._inductor.compile_fx.select_decomp_table", lambda *_, **__: table)

    def main() -> None:
        torch.compile(torch.special.sinc)(torch.ones(3))

    assert at_stage("aot_eager", main) == set()
    assert at_stage("aot_eager_decomp_partition", main) == {"value"}


def test_what_ends_earlier_or_is_the_program_s_own_stays_what_it_is(at_stage, audited):
    import torch

    def spoil(graph, inputs):
        return lambda *args: [out + 1 for out in graph(*args)]

    def main() -> None:
        torch.compile(torch.sin, backend=spoil)(torch.ones(3))

    assert at_stage("eager", main) == {"value"}
    for backend in ("eager", "aot_eager", spoil, "inductor"):
        torch.compile(lambda x: x + 1, backend=backend)
    compiled = torch.compile(lambda x: x + 1, backend="aot_eager")
    compiled(torch.ones(3))
    assert [one.stage for one in audited()] == [stages.OWN, "aot_eager"]


# Of integers: no float has to be judged by noise, run after run.
PLANTED = """
    import torch
    from torch._inductor import lowering

    aten = torch.ops.aten
    wrong = lowering.lowerings[aten.bitwise_or.Tensor]
    lowering.lowerings[aten.bitwise_xor.Tensor] = wrong

    @torch.compile
    def f(x, y):
        return (x & y) * (x ^ y)

    f(torch.arange(1, 4), torch.arange(1, 4))
"""


def explained(source: str, cache: Path):
    """The record of a snippet that diverges, and its failures as a build tells them."""
    expects = Expectations(fresh=True, timeout=600.0)
    snippet = Snippet("part/name", textwrap.dedent(source), Place("p.md", 1), expects, {})
    with run.measurement_lock():
        made = run.run(snippet, "key", cache)
        made = run.explain(snippet, made, report.undeclared(snippet, made), cache)
    return made, [line for one in report.judge(snippet, made) for line in one.details]


def alone(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of ours to be found: neither variables nor the package."""
    hidden = ("measured", "hooks")
    source = path.read_text()
    assert not any(f"import {name}" in source for name in hidden)
    return subprocess.run(
        [sys.executable, "-I", str(path)], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return explained(PLANTED, tmp_path_factory.mktemp("cache"))


@pytest.mark.nightly
def test_a_build_names_the_wrong_lowering(planted):
    made, told = planted
    (first,) = report.differences(made.audit.calls)
    origin = first.difference.origin
    assert (origin.stage, origin.same) == ("inductor", True)
    assert origin.culprit == "lowerings, number 1 from 0: aten.bitwise_xor.Tensor"
    assert f"arises in: {stages.STAGES['inductor']}: {origin.culprit}" in told
    assert f"reproducer: {origin.reproducer}" in told
    assert origin.reproduced is True


@pytest.mark.nightly
def test_a_reproducer_needs_nothing_but_torch_and_agrees_once_the_fault_is_mended(
    planted, tmp_path
):
    made, _ = planted
    path = Path(report.differences(made.audit.calls)[0].difference.origin.reproducer)
    shown = alone(path, tmp_path)
    assert shown.returncode == 1, shown
    assert "result at (0,) (value)\neager     0\ncompiled  1\nthey differ" in shown.stdout
    mended = tmp_path / "mended.py"
    mended.write_text(
        path.read_text().replace("lowering.lowerings[aten.bitwise_xor.Tensor] =", "_ =")
    )
    shown = alone(mended, tmp_path)
    assert (shown.returncode, "they do not differ" in shown.stdout) == (0, True), shown


BRANCH = """
    import torch

    def f(x, y):
        if torch.compiler.is_compiling():
            {compiled}
        {eager}

    # Calls of another callable, and earlier ones of this, are not the one in question.
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    f = torch.compile(f, backend="eager")
    x, y = torch.ones(2, 3, requires_grad={grad}), torch.zeros(2, 3)
    for _ in range(2):
        result = f(x, y)
        {grad} and result.sum().backward()
"""


@pytest.mark.parametrize(
    ("compiled", "eager", "found"),
    [
        ("return [x * 3]", "return [x * 2]", difference("value", "result[0]", index="(1, 2)")),
        ("return x * torch.nan", "return x", difference("nan", "result", index="(0, 0)")),
        ("return x.double()", "return x", difference("dtype", "result")),
        ("return x[:1]", "return x", difference("shape", "result")),
        ("return x.t().contiguous().t()", "return x", difference("stride", "result")),
        ("return x.detach()", "return x + 0", difference("requires_grad", "result")),
        ("return (x,)", "return [x]", difference("type", "result")),
        ("y.add_(1)", "return x", difference("value", "args[1]", index="(0, 0)")),
        ("return x", "raise KeyError('no')", difference("exception-only-in-eager", "call")),
        (
            "return x * 3",
            "return x * 2",
            difference("value", "gradient of args[0]", index="(0, 0)"),
        ),
    ],
    ids=lambda value: f"{value.kind} of {value.path}" if isinstance(value, Difference) else "",
)
def test_a_reproducer_shows_every_kind(tmp_path, compiled, eager, found):
    grad = found.kind == "requires_grad" or "gradient" in found.path
    source = textwrap.dedent(BRANCH.format(compiled=compiled, eager=eager, grad=grad))
    one = Call(0, "f", 1, 1, "diverges", [found], 0.0, "none", stage="eager")
    path = tmp_path / "shows.py"
    path.write_text(reproducer.write(source, "a.py", one, found, origin=Origin("eager")))
    shown = alone(path, tmp_path)
    assert shown.returncode == 1, shown
    if found.kind in ("nan", "exception-only-in-eager"):
        same = source.replace("if torch.compiler.is_compiling():", "if False:")
        path.write_text(reproducer.write(same, "a.py", one, found, origin=Origin("eager")))
        shown = alone(path, tmp_path)
        assert shown.returncode == 0, shown


def test_a_call_that_is_not_reached_is_no_agreement(tmp_path):
    found = difference("value", "result", index="(0,)")
    path = tmp_path / "shows.py"
    path.write_text(
        reproducer.write("import torch", "a.py", call(found), found, origin=Origin("eager"))
    )
    shown = alone(path, tmp_path)
    assert (shown.returncode, shown.stdout[:11]) == (2, "not reached")


def test_a_reproducer_says_what_it_can_not_show():
    found = difference("mode", "grad mode after the call")
    text = reproducer.write("import torch", "a.py", call(found), found, origin=Origin("eager"))
    assert "can not look at what differs (mode of grad mode after the call)" in text
    assert reproducer.looks_at(found)[:2] == ("text", "result")


def test_a_tenth_of_what_was_measured_is_a_difference_of_floats_and_no_other():
    floats = difference(eager="1.0", compiled="2.0", dtype="torch.float32")
    assert reproducer._allowed(floats) == 0.1
    assert reproducer._allowed(difference(eager="1", compiled="2", dtype="torch.int64")) == 0
    assert reproducer._allowed(difference(eager="nan", compiled="2.0", dtype="torch.float32")) == 0


def measured(folder: Path, source: str, *options: str) -> tuple[int, dict]:
    (folder / "program.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "measured", "audit", "--json", *options, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def origin_of(told: dict) -> dict | None:
    return told["calls"][0]["differences"][0]["origin"]


SHRINKS = """
    import torch
    from torch.nn.functional import smooth_l1_loss

    @torch.compile(backend="aot_eager_decomp_partition")
    def losses(x):
        return smooth_l1_loss(x, torch.zeros_like(x), reduction="none")

    x = torch.tensor([0.25, float("nan"), -4.0], requires_grad=True)
    losses(x).sum().backward()
"""


@pytest.mark.nightly
def test_the_command_names_the_wrong_decomposition_and_writes_a_reproducer(tmp_path):
    code, told = measured(tmp_path, SHRINKS, "--reproducer", "alone.py")
    assert code == 1
    origin = origin_of(told)
    assert origin["stage"] == "aot_eager_decomp_partition"
    assert "aten.smooth_l1_loss_backward" in origin["culprit"]
    assert (origin["reproducer"], origin["reproduced"]) == ("alone.py", True)
    assert any(
        line.startswith("arises in: decompositions") for line in told["divergences"][0]["details"]
    )
    shown = alone(tmp_path / "alone.py", tmp_path)
    assert (shown.returncode, "gradient of args[0] at (1,)" in shown.stdout) == (1, True)


COMPILING = """
    import os, torch

    @torch.compile(backend="aot_eager")
    def f(x):
        return x * (2 if torch.compiler.is_compiling() else 3)

    {again}
    f(torch.ones(3))
"""


def test_the_command_names_dynamo_and_looks_no_further(tmp_path):
    code, told = measured(tmp_path, COMPILING.format(again="open('runs', 'a').write('x')"))
    assert (code, origin_of(told)["stage"]) == (1, "eager")
    assert (tmp_path / "runs").read_text() == "xx"


@pytest.mark.parametrize("option", ["--no-locate", "--once"])
def test_the_command_can_be_told_not_to_look(tmp_path, option):
    code, told = measured(tmp_path, COMPILING.format(again="open('runs', 'a').write('x')"), option)
    assert (code, origin_of(told)) == (1, None)
    assert (tmp_path / "runs").read_text() == "x"


# The second run finds what the first one left, and does something else.
AGAIN = "first = not os.path.exists('mark'); open('mark', 'w')"


def audit_here(folder: Path, monkeypatch, source: str) -> list[str]:
    monkeypatch.chdir(folder)
    (folder / "program.py").write_text(textwrap.dedent(source))
    outcome = script.audit("program.py", [], explained=True, output=subprocess.DEVNULL)
    assert outcome.verdict.exit_code == 1
    return script.text(outcome).splitlines()


def test_the_command_says_what_did_not_come_again(tmp_path, monkeypatch):
    told = audit_here(tmp_path, monkeypatch, COMPILING.format(again=f"{AGAIN}; first or exit()"))
    assert "    arises in: unknown: a second audit did not find it again" in told


def test_a_run_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(locate, "LOCATE_SECONDS", 1.0)
    again = f"{AGAIN}; first or __import__('time').sleep(600)"
    told = audit_here(tmp_path, monkeypatch, COMPILING.format(again=again))
    assert "    arises in: unknown: not found within 1 s" in told


class Part:
    def __init__(self, name: str) -> None:
        self.name = name


class Setting(Part):
    config_field, config_value = "cse", False


@pytest.mark.parametrize(
    ("subsystem", "number", "info", "culprit"),
    [
        ("lowerings", 3, "aten.sin.default", "lowerings, number 3 from 0: aten.sin.default"),
        ("lowerings", 3, None, "lowerings, number 3 from 0: unnamed"),
        ("inductor_cse", 0, "inductor_cse", "gone with cse = False"),
        (None, None, None, ""),
    ],
)
def test_what_the_bisector_found_in_words(subsystem, number, info, culprit):
    from torch._inductor.compiler_bisector import BisectionResult

    result = BisectionResult("inductor", subsystem, number, info)
    told = bisection.said(result, [Part("lowerings"), Setting("inductor_cse")])
    assert (told.culprit, bool(told.detail)) == (culprit, not culprit)
