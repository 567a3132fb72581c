"""Fixtures: an audit in this process. Options: how much of the long tests is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from measured import events
from measured.record import Call
from measured.run import merge_gradients

# Programs that tests run, no modules with doctests.
collect_ignore = ["parity", "programs"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="how often each program in tests/parity runs, each time with other random inputs",
    )
    parser.addoption(
        "--all-programs",
        action="store_true",
        help="run all programs in tests/programs; without it, a third of them",
    )


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Call]]]:
    """Shadows `torch.compile` in this process. Call the fixture for the verdicts so far."""
    import torch
    from torch._dynamo import eval_frame, output_graph

    from measured import shadow

    torch._dynamo.reset()
    log = tmp_path / "events"
    for owner, name in (
        (eval_frame._TorchDynamoContext, "__call__"),
        (output_graph.OutputGraph, "call_user_compiler"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    shadow.shadow_what_dynamo_returns(eval_frame, events.Log(log))
    shadow.count_entries(output_graph)

    def calls() -> list[Call]:
        return merge_gradients([e.call for e in events.read(log) if isinstance(e, events.Called)])

    yield calls
    torch._dynamo.reset()
