"""The benchmark of the audit itself. Nothing here is timed."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from measured import build, costs, evidence

RECORD = evidence.read(Path(__file__).parent.parent / "docs")["costs"]


@pytest.mark.parametrize("name", costs.PROGRAMS)
def test_a_program_prints_the_seconds_of_a_call(name, tmp_path):
    program, _, elements = costs.PROGRAMS[name]
    path = tmp_path / "program.py"
    path.write_text(program.format(calls=2, elements=elements).replace("torch.compile(", "("))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0


def test_a_ratio_is_one_of_medians():
    row = costs.row("loop", 10, alone=[1.0, 2.0, 9.0], audited=[3.0, 100.0, 1.0])
    assert (row["alone_seconds"], row["audited_seconds"], row["ratio"]) == (2.0, 3.0, 1.5)


def test_the_record_is_of_these_programs():
    assert {row["name"]: row["calls"] for row in RECORD["programs"]} == {
        name: calls for name, (_, calls, _) in costs.PROGRAMS.items()
    }
    for row in RECORD["programs"]:
        assert len(row["alone_samples"]) == len(row["audited_samples"]) == RECORD["rounds"]
        assert row == costs.row(
            row["name"], row["calls"], row["alone_samples"], row["audited_samples"]
        )


def test_by_the_record_no_benchmark_takes_twice_as_long():
    ratios = [row["ratio"] for row in RECORD["programs"] if row["name"].startswith("benchmark")]
    assert ratios
    assert max(ratios) <= 2


def test_the_cost_of_a_build_is_the_median_over_its_snippets():
    def taking(observed: float, audited: float | None) -> types.SimpleNamespace:
        audit = types.SimpleNamespace(process=types.SimpleNamespace(wall_seconds=audited))
        return types.SimpleNamespace(
            observed=types.SimpleNamespace(wall_seconds=observed),
            audit=None if audited is None else audit,
        )

    records = [taking(2.0, 1.0), taking(1.0, 1.5), taking(1.0, 9.0), taking(1.0, None)]
    assert build.audit_cost(records) == 1.5
    assert build.audit_cost([]) == 0
