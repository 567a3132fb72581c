"""The audit finds every planted fault, by its name and place, and flags no program without one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import mutants
from measured import evidence, mutations
from mutants.fault import PLACES

RECORD = evidence.read(Path(__file__).parent.parent / "docs")["mutations"]

EVERY = 6
"""By day, every so-manyth fault is planted; the record has all of them."""

each_fault = pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=pytest.mark.nightly if index % EVERY else ())
        for index, fault in enumerate(mutants.FAULTS)
    ],
)


@each_fault
def test_a_planted_fault_is_found_and_nothing_else(fault):
    calls = mutations.judged(fault, planted=True)
    assert mutations.differences(calls) == fault.expected
    assert {call.verdict for call in calls} <= {"agrees", "diverges"}


@each_fault
def test_without_its_fault_a_program_agrees(fault):
    assert {call.verdict for call in mutations.judged(fault, planted=False)} == {"agrees"}


def test_every_fault_has_a_name_of_its_own_and_something_to_find():
    assert Counter(fault.name for fault in mutants.FAULTS).most_common(1)[0][1] == 1
    assert all(fault.expected for fault in mutants.FAULTS)
    assert {fault.place for fault in mutants.FAULTS} == set(PLACES)


def test_the_record_is_of_these_faults():
    rows = {row["name"]: (row["place"], row["expected"]) for row in RECORD["faults"]}
    assert rows == {f.name: (f.place, sorted(f.expected)) for f in mutants.FAULTS}


def test_the_record_has_caught_every_fault_and_flagged_no_control():
    missed = [row["name"] for row in RECORD["faults"] if not (row["caught"] and row["agrees"])]
    assert missed == []
    assert all(row["found"] == row["expected"] for row in RECORD["faults"])


def test_the_totals_are_those_of_the_rows():
    assert RECORD["totals"] == mutations.totals(RECORD["faults"])
    assert RECORD["kinds"] == mutations.by_kind(RECORD["faults"])
    assert RECORD["totals"]["faults"] == len(mutants.FAULTS)
