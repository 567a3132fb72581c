"""The calibration of the parity rule: what it plants is caught, and its record is of this rule."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from measured import battery, calibrate, compare, constants, evidence
from measured.build import Build
from measured.pages import Page, ValueUse
from measured.render import Renderer
from measured.results import Results
from measured.snippets import Place

DOCS = Path(__file__).parent.parent / "docs"
RECORDS = evidence.read(DOCS)
RECORD = RECORDS["calibration"]


class Given:
    """A reference that knows what eager would give."""

    def __init__(self, float64: torch.Tensor | None, noise: torch.Tensor | None) -> None:
        self._float64 = float64
        self._noise = noise

    def float64(self, path, places):
        return None if self._float64 is None else self._float64[places]

    def noise(self, path, places, runs):
        return None if self._noise is None else self._noise[places]

    def moves(self, path, value):
        return False


def needed(eager, compiled, float64=None, noise=None):
    places = torch.arange(len(eager))
    return calibrate.needed_factors(eager, compiled, "x", places, Given(float64, noise)).tolist()


def test_an_element_needs_its_distance_in_times_the_noise():
    eager = torch.ones(3)
    compiled = torch.tensor([1.5, 2.0, 0.0])
    noise = torch.tensor([0.1, 0.1, 0.0], dtype=torch.float64)
    assert needed(eager, compiled, noise=noise) == pytest.approx([5.0, 10.0, math.inf])


def test_what_float64_excuses_needs_no_noise():
    eager, compiled = torch.ones(2), torch.tensor([1.5, 1.5])
    precise = torch.tensor([1.4, 1.0], dtype=torch.float64)
    noise = torch.full((2,), 0.25, dtype=torch.float64)
    assert needed(eager, compiled, precise, noise) == pytest.approx([0.0, 2.0])


def test_nan_on_one_side_needs_what_no_number_is():
    noise = torch.ones(2, dtype=torch.float64)
    eager, compiled = torch.tensor([1.0, math.inf]), torch.tensor([math.nan, 1.0])
    assert needed(eager, compiled, noise=noise) == [math.inf, math.inf]


@pytest.mark.parametrize("scale", [1.0, 1e-8])
@pytest.mark.parametrize("dtype", battery.FLOATS, ids=str)
def test_planted_faults_are_caught(dtype, scale):
    if dtype == torch.float16:
        scale = max(scale, 1e-3)  # Below, float16 has no normal numbers.
    names = ["mul", "add", "exp"]
    bench = calibrate.Bench(dtype, scale, 10_000, names)
    assert {name: bench.caught(name, 32) for name in names} == dict.fromkeys(names, 1.0)


def test_one_wrong_element_among_many_is_caught():
    bench = calibrate.Bench(torch.float32, 1e-8, 10_000_000, ["mul"])
    assert bench.caught("mul", 32, torch.tensor([7_654_321])) == 1.0


@pytest.mark.parametrize("dtype", battery.FLOATS, ids=str)
def test_a_fault_has_the_size_it_was_given(dtype):
    values = torch.linspace(-3, 3, 100).to(dtype)
    wrong = calibrate.planted_at(values, 4)
    there = values.double()
    moved = (wrong.double() - there).abs() / compare.ulp(there, dtype)
    # Across a power of two, a step is twice as wide.
    assert moved.min() >= 3
    assert moved.max() <= 5


def test_nothing_planted_is_nothing_caught():
    assert calibrate.Bench(torch.float32, 1.0, 1000).caught("mul", 0) == 0.0


def test_a_program_is_tallied():
    program = battery.Function("halves", lambda x: x / 2, lambda draw: {"x": draw.normal(64)})
    row = calibrate.tally(program, torch.float32, seeds=2).row()
    assert (row["name"], row["dtype"]) == ("halves", "float32")
    assert (row["tensors"], row["elements"], row["flagged"]) == (4, 256, 0)


def test_the_record_is_of_this_rule():
    now = {name: getattr(constants, name) for name in RECORD["constants"]}
    assert RECORD["constants"] == now == calibrate.the_constants()


def test_the_record_holds_every_program():
    ran = {(row["name"], row["dtype"]) for row in RECORD["innocent"] + RECORD["bugs"]}
    programs = battery.programs() + battery.different()
    assert ran == {(p.name, str(d).removeprefix("torch.")) for p in programs for d in p.dtypes}


def test_the_record_has_caught_every_real_difference():
    assert all(row["flagged"] for row in RECORD["bugs"])


@pytest.mark.parametrize("name", evidence.TABLES)
def test_a_list_of_a_record_is_a_table(tmp_path, name):
    renderer = Renderer(Build(Results(tmp_path), DOCS))
    renderer.enter("page.md", "page/")
    html = renderer.value(name)
    of, _, part = name.partition(".")
    if of not in RECORDS:
        pytest.skip(f"{evidence.file_name(of)} is still to be measured")
    assert html.count("<tr>") == 1 + len(RECORDS[of][part])


@pytest.mark.parametrize("value", ["calibration.seeds", "mutations.totals.faults"])
def test_a_value_of_a_record_leads_to_it(tmp_path, value):
    renderer = Renderer(Build(Results(tmp_path), DOCS))
    renderer.enter("page.md", "page/")
    html = renderer.value(f"{value} | count")
    assert f'href="../{value.partition(".")[0]}.json"' in html


@pytest.mark.parametrize("name", evidence.TABLES)
def test_without_a_record_a_table_is_a_mistake(tmp_path, name):
    build = Build(Results(tmp_path), tmp_path)
    build.read([Page("a.md", [], [ValueUse(name, Place("a.md", 1))], [])])
    (failure,) = build.judge([])
    assert f"there is no {evidence.file_name(name.partition('.')[0])} beside the pages" in (
        failure.message
    )
