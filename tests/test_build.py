"""The build without MkDocs: what it asks of the machine, and what it judges."""

from __future__ import annotations

import msgspec
import pytest

from measured import machine
from measured.build import Build
from measured.pages import Page, ValueUse
from measured.record import SCHEMA, Audit, Books, Call, Conditions, Difference, Process, RunRecord
from measured.report import judge, text, verdict
from measured.results import Results
from measured.snippets import Expectations, Place, Snippet


def a_record() -> RunRecord:
    process = Process("finished", "", 1.0, 0.5, 1 << 20, "hi\n")
    return RunRecord(
        SCHEMA, "key", "a/b", "print()", {}, "2026-01-01T00:00:00+00:00", machine.describe(),
        process, 1, Conditions(0.0, 0.0, 0.0, 0, None), Books([], []), None, {}, [], [], None,
    )  # fmt: skip


def snippet(**expects) -> Snippet:
    return Snippet("a/b", "print()", Place("page.md", 3), Expectations(**expects), {})


@pytest.mark.parametrize(
    ("name", "hint"), [("torch_version", "run `uv sync`"), ("cpp_compiler", "apt-get install g++")]
)
def test_what_is_missing_is_one_line_and_nothing_runs(tmp_path, monkeypatch, name, hint):
    machine.describe()  # Kept for the whole process: it must not remember what this test makes up.
    monkeypatch.setattr(machine, name, lambda: None)
    build = Build(Results(tmp_path))
    build.read([Page("page.md", [snippet()], [], [])])
    assert build.plan() == []
    (failure,) = build.judge([])
    assert hint in failure.message
    assert str(failure.place) == "page.md:3"


def audited(*calls: Call) -> RunRecord:
    made = a_record()
    return msgspec.structs.replace(
        made, audit=Audit(made.observed, list(calls), len(calls), False, None, "")
    )


def call(verdict: str, number: int = 1, index: int = 0, *differences: Difference) -> Call:
    return Call(0, "f", index, number, verdict, list(differences), 0.0, "equal")


def messages(expects: dict, *calls: Call) -> list[str]:
    return [failure.message for failure in judge(snippet(**expects), audited(*calls))]


def test_a_callable_that_only_ever_ran_eager_fails_unless_no_graph_is_declared():
    calls = [call("ran eager"), call("agrees", 1, 1)]
    assert "no call of f was compared: ran eager" in messages({}, *calls)[0]
    assert messages({"graphs": 0}, *calls) == []


def test_a_callable_that_ran_eager_only_sometimes_passes():
    assert messages({}, call("agrees"), call("ran eager", 2)) == []


def test_every_difference_of_a_call_is_told():
    first = Difference("value", "result[0]", "1 of 2 elements differ")
    second = Difference("dtype", "result[1]", "eager has float32")
    told = messages({}, call("diverges", 1, 0, first, second))
    assert [("result[0]" in m, "result[1]" in m) for m in told] == [(True, False), (False, True)]


def test_a_difference_that_later_calls_show_too_is_told_once():
    wrong = Difference("value", "result", "1 of 2 elements differ")
    (failure,) = judge(snippet(), audited(*(call("diverges", n, 0, wrong) for n in (1, 2, 4))))
    assert "call 1 of f: result" in failure.message
    assert failure.details[-1] == "also in call 2, 4"


def test_the_list_of_failures_is_in_the_order_of_the_pages():
    failures = [
        *judge(msgspec.structs.replace(snippet(graphs=1), place=Place("b.md", 2)), audited()),
        *judge(msgspec.structs.replace(snippet(graphs=1), place=Place("a.md", 9)), audited()),
        *judge(msgspec.structs.replace(snippet(graphs=1), place=Place("a.md", 4)), audited()),
    ]
    lines = text(failures).splitlines()
    assert lines[0] == "3 failures"
    assert [line.split(" ")[2] for line in lines[1:]] == ["a.md:4:", "a.md:9:", "b.md:2:"]


WRONG_GRADIENT = Difference("value", "gradient of args[0]", "1 of 2 elements differ")
WRONG_VALUE = Difference("value", "result", "3 of 4 elements differ")


def declares(names: str) -> dict:
    return {"diverges": tuple(names.split()), "upstream": "by-design"}


def test_a_declared_difference_that_is_measured_passes():
    diverges = call("diverges", 2, 0, WRONG_GRADIENT)
    assert messages(declares("grad/value"), call("agrees"), diverges) == []
    assert (
        messages(declares("value grad/value"), call("diverges", 1, 0, WRONG_VALUE), diverges) == []
    )
    record = audited(diverges)
    assert verdict(snippet(**declares("grad/value")), record, False) == "diverges as declared"


def test_a_declared_difference_that_is_gone_fails():
    expected = ['declared diverges="grad/value", measured nothing']
    assert messages(declares("grad/value"), call("agrees")) == expected


def test_a_difference_beside_the_declared_one_fails_and_is_told():
    calls = [call("diverges", 1, 0, WRONG_VALUE, WRONG_GRADIENT)]
    (failure,) = judge(snippet(**declares("grad/value")), audited(*calls))
    assert failure.kind == "expectation"
    assert failure.message.endswith("measured value grad/value (not declared: value)")
    assert any("call 1 of f: result diverges" in line for line in failure.details)


def test_a_declared_difference_missing_beside_another_fails():
    (message,) = messages(declares("value nan"), call("diverges", 1, 0, WRONG_VALUE))
    assert message.endswith("measured value (not found: nan)")


def test_an_undeclared_difference_is_a_divergence():
    (failure,) = judge(snippet(), audited(call("diverges", 1, 0, WRONG_VALUE)))
    assert failure.kind == "divergence"


@pytest.mark.parametrize(
    ("only_random", "said"), [(True, None), (False, "a difference that stays"), (None, "stays")]
)
def test_declared_random_numbers_must_be_all_that_differs(only_random, said):
    record = audited(call("diverges", 1, 0, WRONG_VALUE, WRONG_GRADIENT))
    audit = msgspec.structs.replace(record.audit, only_random=only_random)
    failures = judge(snippet(**declares("rng")), msgspec.structs.replace(record, audit=audit))
    assert [said in failure.message for failure in failures] == ([True] if said else [])


def test_declared_random_numbers_that_do_not_differ_fail():
    record = audited(call("agrees"))
    audit = msgspec.structs.replace(record.audit, only_random=True)
    (failure,) = judge(snippet(**declares("rng")), msgspec.structs.replace(record, audit=audit))
    assert failure.message == 'declared diverges="rng", measured nothing'


@pytest.mark.parametrize("expects", [{}, declares("value")])
def test_a_declared_difference_excuses_no_disturbance(expects):
    record = audited(call("diverges", 1, 0, WRONG_VALUE))
    audit = msgspec.structs.replace(record.audit, disturbed="it printed more")
    failures = judge(snippet(**expects), msgspec.structs.replace(record, audit=audit))
    assert [f.kind for f in failures] == (["disturbed"] if expects else ["divergence"])


def test_a_claim_on_what_was_not_run_here_is_undecided_and_a_mistake_in_it_is_told(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(machine, "has_cuda", lambda: False)
    uses = [
        ValueUse(f"a/b.x | times | {bound}", Place("page.md", line))
        for line, bound in ((5, "at_least(2)"), (6, "at_lest(2)"))
    ]
    build = Build(Results(tmp_path))
    build.read([Page("page.md", [snippet(needs="cuda")], uses, [])])
    assert build.plan() == []
    ((place, claim),) = build.claims
    assert (place.line, claim.outcome, claim.reason) == (5, "undecided", "not run here")
    (mistake,) = build.judge([])
    assert (mistake.kind, mistake.place.line) == ("mistake", 6)
    required = build.judge([], require_claims=True)
    assert [(failure.kind, failure.place.line) for failure in required] == [
        ("mistake", 6),
        ("claim", 5),
    ]
