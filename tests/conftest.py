"""Fixtures: an audit in this process. Option: how many random inputs the parity programs get."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from measured import events
from measured.record import Call
from measured.run import merge_gradients

# Programs that the parity tests run, no modules with doctests.
collect_ignore = ["parity"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="how often each program in tests/parity runs, each time with other random inputs",
    )


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Call]]]:
    """Shadows `torch.compile` in this process. Call the fixture for the verdicts so far."""
    import torch
    from torch._dynamo import convert_frame, eval_frame, output_graph

    from measured import benchmarks, due, shadow

    torch._dynamo.reset()
    log = tmp_path / "events"
    for owner, name in (
        (eval_frame._TorchDynamoContext, "__call__"),
        (output_graph.OutputGraph, "call_user_compiler"),
        (convert_frame.CatchErrorsWrapper, "__call__"),
        (timeit.Timer, "timeit"),
        (torch.nn.Module, "load_state_dict"),
        (torch.optim.Optimizer, "load_state_dict"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    shadow.shadow_what_dynamo_returns(eval_frame, events.Log(log))
    shadow.count_entries(output_graph)
    shadow.stop_when_compiler_is_asked(convert_frame)
    benchmarks.notice(timeit)
    for owner in (torch.nn.Module, torch.optim.Optimizer):
        due.notice_loads(owner)

    def calls() -> list[Call]:
        return merge_gradients([e.call for e in events.read(log) if isinstance(e, events.Called)])

    yield calls
    torch._dynamo.reset()
