"""Cases that somebody else wrote down, for any torch: `pytest tests/test_cases.py --cases=FOLDER`.

The folder holds programs in `diverging`, `innocent` and `policy`, and `expected.json`: for each of
the diverging ones, the kinds of difference by version of torch.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import runpy
from pathlib import Path

import pytest

NAMES = {
    # A later use by the caller, which shows what memory is like; the audit names what it is like.
    "observed/value": {"aliasing", "stride"},
    "input mutation/value": {"argument/value"},
    # Raised by the compiler, not by what it compiled.
    "exception-only-in-compiled": {"exception-only-in-compiled", "refused"},
}
"""Kind as a case names it -> the audit's names for it, where these differ."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = metafunc.config.getoption("cases")
    paths = sorted(Path(folder).glob("*/*.py")) if folder else []
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    metafunc.parametrize("path", paths, ids=names)


def test_a_case_is_judged_as_written_down(path, audited):
    import numpy as np
    import torch
    from torch._inductor import config

    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    with (
        # What the runner does for a program that was seen to draw in compiled code.
        config.patch(fallback_random=True),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.suppress(Exception),  # The program's own end is none of the audit's.
    ):
        runpy.run_path(str(path), run_name="__main__")
    calls = audited()
    assert calls
    found = {d.name for call in calls for d in call.differences}
    found |= {call.verdict for call in calls if call.verdict == "refused"}
    assert all(call.verdict != "audit failed" for call in calls)
    if path.parent.name == "policy":
        return  # Decided either way: test_parity holds what is decided of such programs here.
    kinds = []
    if path.parent.name == "diverging":
        cases = json.loads((path.parent.parent / "expected.json").read_text(encoding="utf-8"))
        of_version = cases[f"diverging/{path.stem}"]["kinds"]
        kinds = of_version.get(torch.__version__.partition("+")[0], [])
    assert [kind for kind in kinds if not NAMES.get(kind, {kind}) & found] == []
    assert bool(kinds) == bool(found), found
