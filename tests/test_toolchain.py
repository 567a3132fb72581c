"""What is done once on a machine, and not for each build."""

from __future__ import annotations

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
