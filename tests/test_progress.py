"""What a build says while it runs snippets, and how long it thinks it will take."""

from __future__ import annotations

import pytest

from measured import durations
from measured.progress import Step, Tracker, remaining_seconds, shown


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def step(name: str, doing: str = "observing", number: int = 1, of: int = 3) -> Step:
    return Step(name, doing, number, of)


@pytest.mark.parametrize(
    ("known", "took", "running", "waiting", "elapsed", "seconds"),
    [
        ({"a": 3.0, "b": 5.0}, {}, {}, ["a", "b"], 0.0, 8.0),
        ({"a": 3.0}, {}, {"a": 1.0}, [], 1.0, 2.0),
        ({"a": 3.0}, {}, {"a": 9.0}, [], 9.0, 0.0),
        ({"a": 3.0}, {}, {}, ["a", "new"], 0.0, None),
        ({}, {}, {"new": 4.0}, [], 4.0, None),
        ({"b": 7.0}, {"a": 1.0}, {}, ["b", "new"], 1.0, 8.0),
        ({}, {"a": 4.0, "b": 6.0}, {}, ["c"], 5.0, 2.5),
        ({}, {"a": 4.0}, {}, [], 4.0, 0.0),
    ],
    ids=[
        "known from earlier builds", "the age of a run counts", "a run that takes longer than before",
        "nothing to tell from", "the first of all", "the mean of those finished, if never run",
        "audits beside each other make it faster", "nothing left",
    ],
)  # fmt: skip
def test_the_estimate(known, took, running, waiting, elapsed, seconds):
    assert remaining_seconds(known, took, running, waiting, elapsed) == seconds


def test_the_time_of_a_snippet_is_from_its_first_step_to_its_last():
    clock = Clock()
    tracker = Tracker(["a", "b"], {"b": 10.0}, clock)
    tracker.note(step("a"))
    clock.now = 2.0
    tracker.note(step("a", "auditing"))
    clock.now = 5.0
    tracker.note(step("a", "finished"))
    assert tracker.took == {"a": 5.0}
    assert tracker.left == "about 10 s left"


def test_elsewhere_than_in_a_terminal_each_step_is_a_line(tmp_path):
    durations.note(tmp_path, "a", 90.0)
    durations.note(tmp_path, "b", 30.0)
    lines: list[str] = []
    with shown(["a", "b"], tmp_path, write=lines.append, live=False) as tell:
        tell(step("a", of=2))
        tell(step("a", "observing again", of=2))
        tell(step("a", "finished", of=2))
    assert lines[:2] == [
        "observing 1/2: a, 0 s elapsed, about 2 min 0 s left",
        "observing again 1/2: a, 0 s elapsed, about 2 min 0 s left",
    ]
    assert lines[2].startswith("finished 1/2: a, ")


def test_in_a_terminal_one_line_is_drawn_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    durations.note(tmp_path, "part/b", 30.0)
    lines: list[str] = []
    with shown(["part/a", "part/b"], tmp_path, write=lines.append, live=True) as tell:
        tell(step("part/a", of=2))
        tell(step("part/a", "finished", of=2))
        tell(step("part/b", "auditing", 2, 2))
    drawn = capsys.readouterr().err
    assert "auditing part/b" in drawn
    assert "1/2" in drawn
    assert "left" in drawn
    assert lines == []


def test_a_build_knows_how_long_a_snippet_took_in_the_last(tmp_path):
    with shown(["a"], tmp_path, write=lambda line: None, live=False) as tell:
        tell(step("a"))
        tell(step("a", "finished"))
    assert list(durations.read(tmp_path)) == ["a"]


def test_a_snippet_that_was_interrupted_has_no_duration(tmp_path):
    durations.note(tmp_path, "a", 30.0)

    def build() -> None:
        with shown(["a"], tmp_path, write=lambda line: None, live=False) as tell:
            tell(step("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build()
    assert durations.read(tmp_path) == {"a": 30.0}


def test_damaged_durations_are_none(tmp_path):
    (tmp_path / "durations.json").write_text('{"a": "long"}')
    assert durations.read(tmp_path) == {}
    durations.note(tmp_path, "a", 1.0)
    assert durations.read(tmp_path) == {"a": 1.0}
