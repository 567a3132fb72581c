"""The audit judges small programs whose verdict is known, each of which states one fact.

`parity/diverging`: compiled and eager differ on at least one version of torch, and the audit names
how. `parity/innocent`: they only seem to differ, and the audit reports nothing. `parity/policy`:
they differ by design, or in what a caller is not promised, and the audit decides the same every
time. With `--seeds N` each program runs N times with other random inputs.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from measured.record import Call

PARITY = Path(__file__).parent / "parity"


def programs(*folders: str) -> pytest.MarkDecorator:
    paths = [path for folder in folders for path in sorted((PARITY / folder).glob("*.py"))]
    return pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])


@pytest.fixture
def program(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module that can be looked up, as the module of a running script can."""
    spec = importlib.util.spec_from_file_location(f"parity_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec.loader.exec_module(module)
    return module


def seed_everything(seed: int) -> None:
    import numpy as np
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@pytest.fixture
def seeds(pytestconfig: pytest.Config) -> range:
    return range(pytestconfig.getoption("seeds"))


@pytest.fixture
def judged(
    program: ModuleType, audited: Callable[[], list[Call]], seeds: range
) -> Iterator[tuple[int, list[Call]]]:
    """The program, run once per seed: each seed and the calls that the audit saw."""
    from torch._inductor import config

    def runs() -> Iterator[tuple[int, list[Call]]]:
        for seed in seeds:
            before = len(audited())
            seed_everything(seed)
            # What the runner does for a snippet that was seen to draw in compiled code.
            with config.patch(fallback_random=getattr(program, "RANDOM", False)):
                program.main()
            yield seed, audited()[before:]

    return runs()


@pytest.fixture
def expected(program: ModuleType) -> set[str]:
    import torch

    minor = ".".join(torch.__version__.split(".")[:2])
    if minor not in program.NAMES:
        pytest.skip(f"the program states what differs on other versions, not on torch {minor}")
    return program.NAMES[minor]


# Equal, and not only contained: a false alarm beside the true one is a false alarm.
@programs("diverging", "policy")
def test_what_differs_is_named_and_nothing_else(judged, expected):
    for seed, calls in judged:
        assert calls, f"seed {seed}: no call was seen"
        names = {d.name for call in calls for d in call.differences}
        # An exception from compiling has a verdict of its own, and fails a build as well.
        names |= {call.verdict for call in calls if call.verdict == "refused"}
        assert names == expected, told(seed, calls)
        assert all(call.verdict != "audit failed" for call in calls), told(seed, calls)


@programs("innocent")
def test_what_only_seems_to_differ_is_no_divergence(judged):
    for seed, calls in judged:
        assert calls, f"seed {seed}: no call was seen"
        # A call that ran eager, or was refused, would make the program say nothing.
        assert {call.verdict for call in calls} <= {"agrees", "not comparable"}, told(seed, calls)


def told(seed: int, calls: list[Call]) -> str:
    """What the audit said, for whoever reads the failure."""
    lines = [f"seed {seed}"]
    for call in calls:
        lines.append(f"call {call.number}: {call.verdict} {call.detail}".rstrip())
        lines += [
            f"  {d.name} at {d.path}: {d.message} {d.eager} | {d.compiled}"
            for d in call.differences
        ]
    return "\n".join(lines)
