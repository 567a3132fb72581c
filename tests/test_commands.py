"""`measured build` and `measured serve`, and a build that is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from sites import environment, make_site, mkdocs, page

from measured import commands, selection, settings
from measured.settings import Settings
from measured.snippets import Mistake

PAGES = ["index.md", "start/five-minutes.md", "start/second.md"]


def measured(
    site: Path, cache: Path, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "measured", *arguments],
        cwd=site,
        env=environment(cache) | (env or {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    "asked", [Settings(), Settings(("a.md", "b/c.md"), True, True), Settings(fresh=True)]
)
def test_settings_travel_in_the_environment(asked):
    assert settings.read(settings.variables(asked)) == asked


@pytest.mark.parametrize("typed", ["start/second.md", "docs/start/second.md", "./start/second.md"])
def test_a_page_may_be_typed_with_its_folder(typed):
    assert selection.chosen([typed], PAGES, "docs") == {"start/second.md"}


def test_all_pages_are_built_if_none_is_named():
    assert selection.chosen([], PAGES, "docs") == set(PAGES)


@pytest.mark.parametrize(
    ("typed", "near"),
    [("five-minutes", "near it: start/five-minutes.md"), ("start/secnd.md", "start/second.md")],
)
def test_an_unknown_page_is_answered_with_near_names(typed, near):
    with pytest.raises(Mistake, match=re.escape(near)):
        selection.chosen([typed], PAGES, "docs")


def test_the_navigation_keeps_what_is_built_and_links_elsewhere():
    nav = ["a.md", {"B": "b.md"}, {"Part": ["c.md", {"Deep": ["d.md"]}]}, {"X": "https://x.y"}]
    left = selection.navigation(nav, {"a.md", "d.md"})
    assert left == [{"B": "b.md"}, {"Part": ["c.md"]}, {"X": "https://x.y"}]


def test_mkdocs_takes_the_place_of_the_command(monkeypatch):
    monkeypatch.setattr(commands.os, "execve", lambda *given: pytest.fail(str(given[1:])))
    if os.name == "posix":
        with pytest.raises(pytest.fail.Exception, match=r"'mkdocs', 'build', '--strict'.*FRESH"):
            commands.become(commands.command("build", ["--strict"]), Settings(fresh=True))


SHARED = 'x = 7\nprint("ran")\n'
NAV = (
    "\nnav: [{Second: second.md}, {First: first.md}, {Part: [{Third: third.md}]}]\n"
    "validation: {omitted_files: warn, anchors: warn}\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pages, of which the second in the alphabet is the first in the navigation."""
    fence = '```python exec="on" fresh="yes"\n--8<-- "part/{}.py"\n```\n'
    return make_site(
        tmp_path_factory.mktemp("commands") / "site",
        {
            "first.md": "# First\n\n" + fence.format("a"),
            "second.md": (
                "# Second\n\n[there](first.md#part) [third](third.md)\n\n"
                "{{ part/a.x }} and {{ part/c.x }}\n\n" + fence.format("b")
            ),
            "third.md": '# Third\n\n```python exec="on" graphz="1"\nx = 1\n```\n\n'
            + fence.format("c"),
        },
        {"a.py": SHARED, "b.py": SHARED, "c.py": SHARED},
        extra=NAV,
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def alone(site: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """One page built alone, where nothing has run before, and another page has a mistake."""
    return measured(site, cache, "build", "--only", "docs/second.md", "--strict")


def text_of(site: Path, path: str) -> str:
    return re.sub(r"<[^>]*>", "", (site / "site" / path / "index.html").read_text())


def test_one_page_alone_is_green_whatever_the_others_are(alone):
    assert alone.returncode == 0, alone.stderr
    assert "WARNING" not in alone.stderr


def test_one_page_alone_runs_its_snippets_and_no_other(site, alone):
    assert "observing 1/1: part/b" in alone.stderr
    assert "part/a" not in alone.stderr
    assert (site / "site" / "second" / "index.html").exists()
    assert not (site / "site" / "first").exists()
    report = json.loads((site / "site" / "report.json").read_text())
    assert [entry["snippet"] for entry in report["snippets"]] == ["part/b"]


def test_values_of_other_pages_are_those_stored_or_not_run_here(site, cache, alone):
    assert "not run here and not run here" in text_of(site, "second")
    assert measured(site, cache, "build", "--only", "first.md").returncode == 0
    again = measured(site, cache, "build", "--only", "second.md", "--strict", "--fresh")
    assert again.returncode == 0, again.stderr
    assert "7 and not run here" in text_of(site, "second")


def test_fresh_runs_again_what_is_stored(site, cache, alone):
    kept = measured(site, cache, "build", "--only", "second.md")
    assert "0 executed now" in kept.stderr
    for result in (
        measured(site, cache, "build", "--only", "second.md", "--fresh"),
        mkdocs(site, cache, "build", env={"MEASURED_ONLY": "second.md", "MEASURED_FRESH": "1"}),
        measured(
            site, cache, "build", "--only", "second.md", env={"CI": "true", "MEASURED_FRESH": ""}
        ),
    ):
        assert "1 executed now" in result.stderr


def test_an_unknown_page_fails_and_names_those_near(site, cache):
    result = measured(site, cache, "build", "--only", "secnd.md")
    assert result.returncode == 1
    assert "there is no page secnd.md; near it: second.md" in result.stderr


def test_snippets_run_in_the_order_of_the_navigation(site, tmp_path):
    mended = (site / "docs" / "third.md").read_text().replace('graphz="1"', 'fresh="yes"')
    (site / "docs" / "third.md").write_text(mended)
    (site / "docs" / "aside.md").write_text("# Aside\n\n" + page(("", "print(1)"))[20:])
    result = mkdocs(site, tmp_path, "build", "-d", str(tmp_path / "out"))
    ran = re.findall(r"observing \d/\d: (\S+),", result.stderr)
    assert ran == ["part/b", "part/a", "third#1", "part/c", "aside#1"]
    assert "finished 5/5: aside#1" in result.stderr


def test_quiet_is_quiet(site, tmp_path):
    result = mkdocs(site, tmp_path, "build", "-q", env={"MEASURED_ONLY": "first.md"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    report = json.loads((site / "site" / "report.json").read_text())
    assert report["executed_now"] == 1


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_keeps_what_finished_and_leaves_no_process(tmp_path, number):
    folder, cache = tmp_path / "site", tmp_path / "cache"
    # As many as are measured before their audits, on any machine.
    fast = [("", f"print('fast', {n})") for n in range(8)]
    make_site(folder, {"index.md": page(*fast, ("", "import time; time.sleep(600)"))})
    build = subprocess.Popen(
        [sys.executable, "-m", "measured", "build"],
        cwd=folder,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert build.stdout
    told = ""
    while "observing 9/9" not in told:
        line = build.stdout.readline()
        assert line, told
        told += line
    deadline = time.monotonic() + 60
    while not (children := psutil.Process(build.pid).children(recursive=True)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)  # Into the sleep.
    children += psutil.Process(build.pid).children(recursive=True)
    build.send_signal(number)
    rest, _ = build.communicate(timeout=60)
    assert build.returncode not in (0, None)
    (line,) = [line for line in rest.splitlines() if line]
    assert line == "Interrupted: 8 of 9 snippets finished, and the results are kept"
    assert [child for child in children if child.is_running()] == []
    (folder / "docs" / "index.md").write_text(page(*fast))
    again = mkdocs(folder, cache, "build")
    assert again.returncode == 0, again.stderr
    assert "0 executed now" in again.stderr
