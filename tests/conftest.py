"""Fixtures: an audit in this process. Options: how much of the long tests is run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from measured.record import Call

# Programs that tests run, no modules with doctests.
collect_ignore = ["parity", "programs"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=int,
        default=1,
        help="how often each program in tests/parity runs, each time with other random inputs",
    )
    parser.addoption("--cases", help="folder of further programs, for test_cases.py")
    parser.addoption(
        "--nightly",
        action="store_true",
        help="run everything: all programs, all planted faults, all controls",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A test says itself when everything is to run again, in CI as elsewhere.
    os.environ.setdefault("MEASURED_FRESH", "0")
    config.addinivalue_line("markers", "nightly: takes long; run with --nightly only")
    if hasattr(config, "workerinput"):
        _share_the_machine(config)


def _share_the_machine(config: pytest.Config) -> None:
    """Tests run side by side, and measure nothing: no thread may wait for a busy core, and no
    worker for the measurement lock of another."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = tempfile.mkdtemp(prefix="measured-tests-")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("nightly"):
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: run with --nightly"))


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Callable[[], list[Call]]]:
    """Shadows `torch.compile` in this process. Call the fixture for the verdicts so far."""
    from measured import inside

    with inside.audited(tmp_path / "events") as calls:
        yield calls


@pytest.fixture
def artefacts_audited(
    audited: Callable[[], list[Call]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[Call]]:
    """The same for what is compiled ahead of time."""
    import torch
    from torch._dynamo import aot_compile
    from torch._inductor.package import package as packaging
    from torch.export import _trace, _unlift, exported_program
    from torch.export.pt2_archive import _package

    from measured import artefacts, audit, events

    for owner, name in (
        (_trace, "_export"),
        (exported_program, "_decompose_exported_program"),
        (_unlift, "_unlift_exported_program_lifted_states"),
        (torch.fx.graph_module._WrappedCall, "__call__"),
        (torch._inductor, "aot_compile"),
        (_package, "package_pt2"),
        (_package, "load_pt2"),
        (_package.AOTICompiledModel, "__call__"),
        (aot_compile, "aot_compile_fullgraph"),
        (aot_compile.AOTCompiledFunction, "serialize"),
        (aot_compile.AOTCompiledFunction, "deserialize"),
        (aot_compile.AOTCompiledFunction, "__call__"),
        (aot_compile.AOTCompiledModel, "__call__"),
    ):
        is_class = isinstance(owner, type)
        monkeypatch.setattr(owner, name, vars(owner)[name] if is_class else getattr(owner, name))
    log = events.Log(tmp_path / "events")
    artefacts.note_functions(aot_compile, log)
    audit.note_compiled_files(torch._inductor)
    artefacts.note_exports(_trace)
    artefacts.note_modules_of_programs(_unlift, log)
    artefacts.note_packages(_package, log)
    # This module was imported, and took the functions, before they were replaced.
    for name in ("package_pt2", "load_pt2"):
        monkeypatch.setattr(packaging, name, getattr(_package, name))
    return audited
