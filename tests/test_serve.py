"""`mkdocs serve`: pages at once, results as they come, and nothing runs that need not."""

from __future__ import annotations

import html
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from sites import environment, make_site, mkdocs, page

from measured import serving
from measured.pages import Page
from measured.reading import Reader
from measured.results import Job, Results
from measured.serving import Desk, Edits
from measured.snippets import Expectations, Place, Snippet
from measured.worker import Gone

PATIENCE_SECONDS = 120.0


def until(true: Callable[[], object], told: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, told()
        time.sleep(0.05)


class Server:
    """`mkdocs serve` on a free port."""

    def __init__(self, site: Path, cache: Path, log: Path) -> None:
        self.site, self.cache, self._log = site, cache, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "measured", "serve", "--dev-addr", self._address],
                cwd=site,
                env=environment(cache),
                stdout=file,
                stderr=file,
            )
        until(lambda: "Serving on" in self.told, lambda: self.told)

    @property
    def told(self) -> str:
        return self._log.read_text()

    @property
    def ran(self) -> list[str]:
        """Names of the snippets that have begun to run, in order."""
        return re.findall(r"observing ([\w/#-]+)", self.told)

    def text(self, path: str = "") -> str:
        with urllib.request.urlopen(f"http://{self._address}/{path}", timeout=60) as answer:
            text = re.sub(r"<[^>]*>", "", answer.read().decode())
        return re.sub(r"\s+", " ", html.unescape(text))

    def shows(self, text: str, path: str = "") -> None:
        until(lambda: text in self.text(path), lambda: self.told + self.text(path))

    def edit(self, name: str, text: str) -> None:
        (self.site / name).write_text(text)

    def wait_for_build(self) -> None:
        """Until a change that has been made is shown."""
        mark = f"mark{time.monotonic_ns()}"
        (self.site / "docs" / "mark.md").write_text(f"# Mark\n\n{mark}\n")
        self.shows(mark, "mark/")


def fences(*codes: str) -> str:
    return page(*(("", code) for code in codes))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[dict[str, str], dict[str, str]], Server]]:
    servers = []

    def start(pages: dict[str, str], snippets: dict[str, str] | None = None) -> Server:
        pages = {"index.md": "# Home\n", "mark.md": "# Mark\n", **pages}
        site = make_site(tmp_path / "site", pages, snippets, extra="\nwatch: [snippets]\n")
        servers.append(Server(site, tmp_path / "cache", tmp_path / "log"))
        return servers[-1]

    yield start
    for server in servers:
        server.process.terminate()
        server.process.wait(60)


INCLUDES = '```python exec="on" fresh="yes"\n--8<-- "part/{}.py"\n```\n'


def test_a_page_shows_at_once_and_its_results_when_they_come(serve):
    slow = (
        "import time\ntime.sleep(3)\nanswer = 42\nprint('the answer is', answer)\ntimes = [1.0]\n"
    )
    chart = '```chart\nkind = "calls"\nof = "part/slow.times"\ntitle = "Calls"\n```\n\n'
    two = "# A\n\nIt is {{ part/slow.answer }}.\n\n" + chart + INCLUDES.format("slow") + "\n"
    server = serve(
        {"a.md": two + INCLUDES.format("next")}, {"slow.py": slow, "next.py": "print('next')\n"}
    )
    text = server.text("a/")
    assert "It is running." in text
    assert "answer = 42" in text
    assert "Calls running" in " ".join(text.split())
    assert "waiting: 1 before it" in text
    assert "nothing compiled" not in text
    server.shows("the answer is 42", "a/")
    assert "It is 42." in server.text("a/")
    server.shows("next nothing compiled", "a/")
    assert server.ran == ["part/slow", "part/next"]


def test_an_edit_to_prose_runs_nothing_and_one_to_a_snippet_runs_that(serve):
    server = serve(
        {"a.md": "# A\n\n" + INCLUDES.format("one"), "b.md": fences("print('two of', 2)")},
        {"one.py": "print('one of', 1)\n"},
    )
    server.shows("one of 1", "a/")
    server.shows("two of 2", "b/")
    assert sorted(server.ran) == ["b#1", "part/one"]
    server.edit("docs/b.md", fences("print('two of', 2)") + "\nMore to say.\n")
    server.shows("More to say.", "b/")
    assert "two of 2" in server.text("b/")
    assert len(server.ran) == 2
    server.edit("snippets/part/one.py", "print('one of', 1 + 10)\n")
    server.shows("one of 11", "a/")
    assert server.ran[2:] == ["part/one"]


def test_a_failure_shows_on_the_page_and_in_the_log_and_serving_goes_on(serve):
    server = serve({"a.md": fences("raise KeyError('missing')")})
    server.shows("raised: KeyError", "a/")
    until(lambda: "a.md:9: a#1: raised: KeyError" in server.told, lambda: server.told)
    server.edit("docs/a.md", fences("raise KeyError('missing')") + "\nMore to say.\n")
    server.shows("More to say.", "a/")
    server.wait_for_build()
    assert server.ran == ["a#1"]  # It has failed, and would again.
    server.edit("docs/a.md", fences("print('mended', 1)"))
    server.shows("mended 1", "a/")


def test_a_mistake_shows_on_its_page_and_serving_goes_on(serve):
    server = serve({"a.md": fences("print('right')"), "b.md": "# B\n"})
    server.shows("right nothing compiled", "a/")
    server.edit("docs/b.md", '# B\n\n```python exec="on" graphz="1"\nx = 1\n```\n')
    server.shows('b.md:3 unknown option graphz="1"', "b/")
    assert "right nothing compiled" in server.text("a/")
    server.edit("docs/b.md", "# B\n\nMended.\n")
    server.shows("Mended.", "b/")


def test_an_edited_snippet_comes_first_and_its_old_version_is_dropped(serve):
    wait = "import time; time.sleep(600); print({})".format
    server = serve({"a.md": fences("print('a')", wait(1)), "b.md": fences(wait(2), wait(3))})
    until(lambda: "observing a#2" in server.told)
    # The one that runs is edited: it is ended. One that waits is edited: it comes next.
    server.edit("docs/a.md", fences("print('a')", "print('quick', 1)"))
    server.shows("quick 1", "a/")
    until(lambda: server.ran[-1] == "b#1")
    server.edit("docs/b.md", fences(wait(2), "print('first', 3)"))
    server.wait_for_build()
    server.edit("docs/b.md", fences("print('in its place')", "print('last', 3)"))
    server.shows("last 3", "b/")
    assert "first 3" not in server.text("b/")
    server.shows("in its place nothing compiled", "b/")
    assert server.ran == ["a#1", "a#2", "a#2", "b#1", "b#1", "b#2"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_the_server_ends_what_runs_and_keeps_what_finished(serve, number):
    server = serve({"a.md": fences("print('done')", "import time; time.sleep(600)")})
    until(lambda: "observing a#2" in server.told)
    time.sleep(1)  # Into the sleep.
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert len(children) >= 2
    server.process.send_signal(number)
    server.process.wait(60)
    assert [child for child in children if child.is_running()] == []
    assert "Traceback" not in server.told
    (server.site / "docs" / "a.md").write_text(fences("print('done')"))
    result = mkdocs(server.site, server.cache, "build")
    assert "0 executed now" in result.stderr


def snippet(name: str, page: str = "a.md", source: str = "x = 1") -> Snippet:
    return Snippet(name, source, Place(page, 1), Expectations(), {})


def jobs(*snippets: Snippet) -> list[Job]:
    return [(one, f"{one.name}={one.source}") for one in snippets]


def test_edited_snippets_come_first_then_edited_pages_then_the_navigation():
    a, b, c, d, e = (snippet(n, p) for n, p in zip("abcde", "xxyyz", strict=True))
    edits = Edits()

    def note(texts: dict[str, str], *snippets: Snippet) -> None:
        pages = [
            Page(path, [s for s in snippets if s.place.page == path], [], []) for path in "xyz"
        ]
        edits.note(texts, pages)

    def order() -> str:
        return "".join(s.name for s, _ in edits.in_order(jobs(a, b, c, d, e)))

    note({"x": "", "y": "", "z": ""}, a, b, c, d, e)
    assert order() == "abcde"
    note({"x": "", "y": "", "z": "prose"}, a, b, c, d, e)
    assert order() == "eabcd"
    d = msgspec.structs.replace(d, source="x = 2")
    note({"x": "", "y": "", "z": "prose"}, a, b, c, d, e)
    assert order() == "dceab"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Desk, list[str]]]:
    """A desk whose worker takes a tenth of a second, and dies of a snippet named `bad`."""
    ran: list[str] = []

    class Quick:
        def __init__(self, *_: object, **__: object) -> None: ...

        def run(self, job: Job, tell: object) -> object:
            ran.append(job[0].name)
            time.sleep(0.1)
            if job[0].name == "bad":
                raise Gone
            return Record(job[1])

        def end(self) -> None: ...

        close = end

    monkeypatch.setattr(serving, "Worker", Quick)
    made = Desk(Results(tmp_path), fresh=False, log=lambda line: None)
    yield made, ran
    made.close()


class Record(msgspec.Struct):
    key: str


def test_results_that_come_together_are_told_of_once_and_until_a_build_has_looked(desk):
    desk, ran = desk
    desk.want(jobs(*(snippet(f"s{n}") for n in range(5))))
    file = desk.folder / "results"
    until(lambda: file.exists() and file.read_text())
    assert len(ran) == 5
    told = file.read_text()
    until(lambda: file.read_text() != told)  # Nobody has looked.
    desk.collect()
    told = file.read_text()
    time.sleep(2 * serving.TOGETHER_SECONDS)
    assert file.read_text() == told


def test_what_is_no_longer_wanted_does_not_run(desk):
    desk, ran = desk
    a, b, c, d = (snippet(name) for name in "abcd")
    assert desk.want(jobs(a, b, c)) == {"a": 0, "b": 1, "c": 2}
    until(lambda: ran)
    assert desk.want(jobs(a, d)) == {"a": 0, "d": 1}
    until(lambda: (desk.folder / "results").exists())
    assert ran == ["a", "d"]


def test_a_snippet_that_the_worker_dies_of_is_not_tried_again(desk):
    desk, ran = desk
    desk.want(jobs(snippet("bad"), snippet("good")))
    until(lambda: (desk.folder / "results").exists())
    assert desk.want(jobs(snippet("bad"))) == {}
    assert ran == ["bad", "good"]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Reads a page, and says how many pages have been converted."""
    from measured import pages

    converted = []
    monkeypatch.setattr(
        pages, "_convert", lambda *given, original=pages._convert: converted.append(1) or original(*given)
    )  # fmt: skip
    reader = Reader()

    def read(text: str, configs: dict | None = None) -> tuple[Page, int]:
        extensions = ["pymdownx.superfences"]
        found = reader.read("a.md", text, 1, tmp_path, extensions, configs or {})
        return found, len(converted)

    return read


def test_a_page_that_did_not_change_is_read_once(read, tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    text = '```python exec="on"\n--8<-- "one.py"\n```\n'
    assert read(text)[1] == read(text)[1] == 1
    assert read(text + "more")[1] == 2
    assert read(text + "more", {"pymdownx.superfences": {"css_class": "a"}})[1] == 3


def test_a_page_is_read_again_when_a_file_changes_that_it_includes(read, tmp_path):
    text = '```python exec="on"\n--8<-- "one.py"\n```\n'
    assert "does not exist" in read(text)[0].problems[0].message
    for code in ("x = 1", "x = 2"):
        (tmp_path / "one.py").write_text(code + "\n")
        assert [one.source for one in read(text)[0].snippets] == [code]
    (tmp_path / "one.py").unlink()
    assert read(text)[0].problems
