"""Fixtures: an audit in this process, and one small real site built once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from measured import audit, events
from measured.record import Call
from measured.run import merge_gradients

ROOT = Path(__file__).parent.parent


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Call]]]:
    """Shadows `torch.compile` in this process. Call the fixture for the verdicts so far."""
    import torch
    from torch._dynamo import eval_frame, output_graph

    torch._dynamo.reset()
    log = tmp_path / "events"
    for owner, name in (
        (eval_frame._TorchDynamoContext, "__call__"),
        (output_graph.OutputGraph, "call_user_compiler"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    audit.shadow_what_dynamo_returns(eval_frame, events.Log(log))
    audit.count_entries(output_graph)

    def calls() -> list[Call]:
        return merge_gradients([e.call for e in events.read(log) if isinstance(e, events.Called)])

    yield calls
    torch._dynamo.reset()


def mkdocs(
    site: Path, cache: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run MkDocs on a site as a user would, with a cache of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        cwd=site,
        env={
            **os.environ,
            "MEASURED_CACHE": str(cache),
            "NO_MKDOCS_2_WARNING": "1",
            "COLUMNS": "200",
            **(env or {}),
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
