"""What is done once on a machine, and not for each build."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from measured import toolchain


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torch of no content; its bytecode file is the result."""
    folder = tmp_path / "torch"
    (folder / "_inductor" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "version.py").write_text("__version__ = '0'\n")
    (folder / "_inductor" / "compile_fx.py").touch()
    spec = toolchain.importlib.util.spec_from_file_location("torch", folder / "__init__.py")
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: spec)
    written = toolchain.importlib.util.cache_from_source(str(folder / "_inductor/compile_fx.py"))
    return Path(written)


def runs(folder: Path, written: Path, succeeds: bool = True) -> int:
    """How often a build has the imports run."""
    programs: list[str] = []

    def run(program: str) -> bool:
        programs.append(program)
        written.touch()
        return succeeds

    toolchain.write_bytecode.__wrapped__(folder, run)
    return len(programs)


def test_bytecode_is_written_once(environment, tmp_path):
    assert [runs(tmp_path / "kept", environment) for _ in range(2)] == [1, 0]


def test_it_is_written_again_where_the_environment_is_new_or_the_imports_failed(
    environment, tmp_path
):
    assert runs(tmp_path / "kept", environment, succeeds=False) == 1
    assert runs(tmp_path / "kept", environment) == 1
    environment.unlink()
    assert runs(tmp_path / "kept", environment) == 1


class Probe:
    """Leaves what the real one leaves, without a compiler."""

    runs = 0

    def __call__(self, program: str, folder: Path) -> bool:
        self.runs += 1
        for name in ("inductor/fxgraph", "inductor/ab", "tmp/torchinductor_me"):
            (folder / name).mkdir(parents=True)
        return True


def test_a_toolchain_whose_probes_fail_is_not_kept(tmp_path):
    assert toolchain.warm(tmp_path, lambda program, folder: False) is None
    assert list(tmp_path.iterdir()) == []


def test_a_warmed_toolchain_is_made_once_and_holds_no_graphs(tmp_path):
    probe = Probe()
    warmed = toolchain.warm(tmp_path, probe)
    assert toolchain.warm(tmp_path, probe) == warmed
    assert probe.runs == 1
    child = tmp_path / "child"
    child.mkdir()
    toolchain.prepare(child, warmed)
    assert sorted(p.name for p in child.rglob("*")) == ["ab", "inductor", "tmp", "torchinductor_me"]
    (child / "tmp" / "left.txt").touch()
    (child / "tmp" / "left").mkdir()
    toolchain.clear(child)
    assert [p.name for p in (child / "tmp").iterdir()] == ["torchinductor_me"]


def test_each_environment_has_headers_of_its_own(environment, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    warmed = toolchain.warm(kept, Probe())
    elsewhere = importlib.util.spec_from_file_location("torch", tmp_path / "__init__.py")
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: elsewhere)
    assert toolchain.warm(kept, Probe()) != warmed


def test_a_precompiled_header_is_shared_and_all_else_copied(tmp_path):
    warmed = tmp_path / "warmed"
    for name in ("tmp/all.h", "tmp/all.h.gch", "inductor/isa.so"):
        (warmed / name).parent.mkdir(parents=True, exist_ok=True)
        (warmed / name).touch()
    child = tmp_path / "child"
    child.mkdir()
    toolchain.prepare(child, warmed)
    shared = [path.name for path in child.rglob("*.*") if path.stat().st_nlink > 1]
    assert shared == ["all.h.gch"]
    toolchain.prepare(child, warmed)
    assert (warmed / "tmp/all.h.gch").exists()


def test_where_files_can_not_be_shared_they_are_copied(tmp_path, monkeypatch):
    warmed, child = tmp_path / "warmed", tmp_path / "child"
    for folder in (warmed / "tmp", warmed / "inductor", child):
        folder.mkdir(parents=True)
    (warmed / "tmp/all.h.gch").write_text("header")

    def link(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(toolchain.os, "link", link)
    toolchain.prepare(child, warmed)
    assert (child / "tmp/all.h.gch").read_text() == "header"
