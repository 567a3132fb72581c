"""Claims: what a bound says of a value, on which machines, and when nothing can be said."""

from __future__ import annotations

import msgspec
import pytest

from measured import claims, report
from measured.claims import Bound, Claim, classes_of, decide
from measured.record import Machine
from measured.snippets import Mistake, Place

LINUX = Machine("Linux 6.1 x86_64", "CPU", 2, "AVX-512", 1 << 30, None, "3.12", "2.15", "g++")
NOISY = ["f eager: IQR is 20% of the median"]


def on(**changes) -> set[str]:
    return classes_of(msgspec.structs.replace(LINUX, **changes))


@pytest.mark.parametrize(
    ("name", "arguments", "value", "outcome"),
    [
        ("at_least", (2,), 2, "holds"),
        ("at_least", (2,), 1.999, "broken"),
        ("at_most", (1.5,), 1.5, "holds"),
        ("at_most", (1.5,), 2, "broken"),
        ("between", (1, 2), 1, "holds"),
        ("between", (1, 2), 2.0, "holds"),
        ("between", (1, 2), 2.01, "broken"),
        ("between", (1, 2), 0.99, "broken"),
        ("between", (1, 1), 1, "holds"),
        ("equals", (2,), 2.0, "holds"),
        ("equals", (2,), 3, "broken"),
        ("equals", ("the same",), "the same", "holds"),
        ("equals", ("the same",), "the Same", "broken"),
        ("equals", (True,), True, "holds"),
        ("equals", (True,), False, "broken"),
        ("at_least", (2,), float("nan"), "broken"),
        ("at_most", (2,), float("nan"), "broken"),
        ("at_most", (2,), float("-inf"), "holds"),
    ],
)
def test_a_bound_judges_the_value(name, arguments, value, outcome):
    assert decide(claims.bound(name, arguments), value, (), LINUX, []) == (outcome, "")


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("at_least", (2,), "3"),
        ("at_least", (1,), True),
        ("at_most", (2,), [1]),
        ("between", (1, 2), {"a": 1}),
        ("equals", (1,), True),
        ("equals", (True,), 1),
        ("equals", ("1",), 1),
        ("equals", (1,), None),
    ],
)
def test_a_bound_that_can_not_be_said_of_such_a_value_is_a_mistake(name, arguments, value):
    with pytest.raises(Mistake, match="can not be said of"):
        decide(claims.bound(name, arguments), value, (), LINUX, [])


def test_a_bound_that_can_not_be_said_of_a_value_is_a_mistake_on_every_machine():
    with pytest.raises(Mistake):
        decide(Bound("at_least", (2,)), "3", ("windows",), LINUX, NOISY)


@pytest.mark.parametrize(
    ("changes", "classes"),
    [
        ({}, {"cpu", "linux", "x86_64", "avx2", "avx512"}),
        ({"gpu": "H200, 580.1"}, {"cuda", "linux", "x86_64", "avx2", "avx512"}),
        ({"isa": "AMX"}, {"cpu", "linux", "x86_64", "avx2", "avx512", "amx"}),
        ({"isa": "AVX2"}, {"cpu", "linux", "x86_64", "avx2"}),
        ({"isa": "baseline"}, {"cpu", "linux", "x86_64"}),
        (
            {"system": "Linux 6.1 aarch64", "isa": "SVE"},
            {"cpu", "linux", "aarch64", "neon", "sve"},
        ),
        ({"system": "Darwin 24.1.0 arm64", "isa": "unknown"}, {"cpu", "macos", "aarch64", "neon"}),
        ({"system": "Windows 11 AMD64", "isa": "unknown"}, {"cpu", "windows", "x86_64"}),
        ({"system": "FreeBSD 14 riscv64", "isa": "unknown"}, {"cpu"}),
    ],
)
def test_a_machine_belongs_to_its_classes(changes, classes):
    assert on(**changes) == classes
    assert classes <= set(claims.CLASSES)


def test_every_class_asked_for_must_hold():
    bound = Bound("at_least", (2,))
    assert decide(bound, 3.0, ("linux", "avx512"), LINUX, []) == ("holds", "")
    undecided = decide(bound, 1.0, ("linux", "amx"), LINUX, [])
    assert undecided == ("undecided", "this machine is not amx")
    _, reason = decide(bound, 3, ("cuda", "macos", "linux"), LINUX, [])
    assert reason == "this machine is not cuda and not macos"


@pytest.mark.parametrize("value", [1.0, 3.0])
def test_noise_leaves_a_measured_number_undecided(value):
    assert decide(Bound("at_least", (2,)), value, (), LINUX, NOISY) == ("undecided", NOISY[0])


@pytest.mark.parametrize(
    ("bound", "value", "outcome"),
    [
        (Bound("equals", (3,)), 3, "holds"),
        (Bound("equals", (3,)), 4, "broken"),
        (Bound("equals", ("a",)), "b", "broken"),
        (Bound("equals", (True,)), True, "holds"),
    ],
)
def test_noise_leaves_counts_and_names_decided(bound, value, outcome):
    assert decide(bound, value, (), LINUX, NOISY) == (outcome, "")


def claim(outcome: str, reason: str = "") -> tuple[Place, Claim]:
    made = Claim("a/b.x | times | at_least(2)", "at least 2", 1.4999, "1.50×", outcome, reason)
    return Place("page.md", 7), made


def test_a_broken_claim_is_a_failure_with_place_value_and_bound():
    (failure,) = report.judge_claims([claim("holds"), claim("broken"), claim("undecided")], False)
    assert (failure.kind, str(failure.place)) == ("claim", "page.md:7")
    assert failure.message == (
        "{{ a/b.x | times | at_least(2) }}: the claim is broken: "
        "measured 1.50× (1.4999), claimed at least 2"
    )


def test_an_undecided_claim_fails_where_claims_are_required_and_says_why():
    (failure,) = report.judge_claims([claim("holds"), claim("undecided", "noisy: f")], True)
    assert "the claim is undecided (noisy: f): measured 1.50×" in failure.message


@pytest.mark.parametrize(
    ("outcomes", "line"),
    [
        ([], "0 claims: 0 hold, 0 broken, 0 undecided"),
        (["holds"], "1 claim: 1 holds, 0 broken, 0 undecided"),
        (["holds", "undecided", "holds", "broken"], "4 claims: 2 hold, 1 broken, 1 undecided"),
    ],
)
def test_claims_are_counted_in_one_line(outcomes, line):
    assert report.claims_line([claim(outcome) for outcome in outcomes]) == line


def test_the_worst_outcome_is_the_one_that_shows():
    assert claims.worst([claim("holds")[1], claim("undecided")[1]]) == "undecided"
    assert claims.worst([claim("undecided")[1], claim("broken")[1]]) == "broken"
    assert claims.worst([claim("holds")[1]]) == "holds"


def test_the_report_is_json_whatever_was_measured():
    assert msgspec.json.decode(report.encode({"value": float("nan")})) == {"value": None}
