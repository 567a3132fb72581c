"""Programs as tutorials show them print the same under the audit, which finds nothing in them.

Each is run by `measured audit` and by Python alone. What the audit can not follow in a program, and
what truly differs, is in the tables here; everything else has to agree.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from measured import script

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))

UNCHECKED = {
    # Dynamo leaves torch's recurrent layers alone.
    "recurrent": {("LSTM", "ran eager"): "no compiled code was entered"},
    # The recomputation of a block ends as soon as it has what the backward pass needs.
    "checkpointing": {("Block", "not comparable"): "left early"},
}
"""Program -> callable and verdict of calls that are not checked -> what the reason says."""

DIFFERENCES = {
    "compiled_adam": {"state/value"},
    # Its codebook moves after it was looked up: pytorch#197039.
    "vector_quantisation": {"grad/value"},
}
"""Program -> names of the differences from eager that it truly has."""


@pytest.mark.nightly
@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_a_program_prints_the_same_under_the_audit_and_agrees(path, tmp_path, monkeypatch):
    name = path.stem
    # One thread: the order of a sum must not depend on how busy the machine is.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    alone = subprocess.run([sys.executable, path], capture_output=True, timeout=600, check=True)
    with open(tmp_path / "printed", "wb") as printed:
        outcome = script.audit(str(path), [], timeout=600, output=printed.fileno())
    told = script.text(outcome)
    assert (tmp_path / "printed").read_bytes() == alone.stdout
    assert alone.stdout.strip()
    calls = outcome.run.calls
    assert outcome.run.status == 0, told
    assert outcome.run.checked, told
    assert {d.name for c in calls for d in c.differences} == DIFFERENCES.get(name, set()), told
    unchecked = UNCHECKED.get(name, {})
    rest = [call for call in calls if call.verdict not in ("agrees", "diverges")]
    assert {(call.callable, call.verdict) for call in rest} == unchecked.keys(), told
    for call in rest:
        assert unchecked[call.callable, call.verdict] in call.detail
