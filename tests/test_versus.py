"""The benchmark of builds: its sites, its numbers, and one run of it. No time is asserted."""

from __future__ import annotations

import html
import json
import os
import re
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

from measured import contenders, evidence, values, versus
from measured.contenders import CONTENDERS, MARKDOWN_EXEC, SUBPROCESS, THIS_BUILD
from measured.versus import Built

ROOT = Path(__file__).parent.parent
RECORD = evidence.read(ROOT / "docs").get("builds")

the_record = pytest.mark.skipif(RECORD is None, reason="docs/builds.json is still to be measured")

# No torch, and an empty toolchain cache: nothing is compiled.
LEAVES = "import sys\n\nsys.left = True\nprint('one', 6 * 7)\n"
MEETS = "import sys\n\nprint('two', 'left' if hasattr(sys, 'left') else 'alone')\n"
PAGE = """# T

```python exec="on" fresh="yes" graphs="0"
--8<-- "part/one.py"
```

=== "Tab"

    ```python exec="on" fresh="yes"
    --8<-- "part/two.py"
    ```
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "docs").mkdir()
    (folder / "snippets" / "part").mkdir(parents=True)
    (folder / "docs" / "index.md").write_text(PAGE)
    (folder / "snippets" / "part" / "one.py").write_text(LEAVES)
    (folder / "snippets" / "part" / "two.py").write_text(MEETS)
    config = contenders.config(THIS_BUILD)
    config["markdown_extensions"].append({"pymdownx.tabbed": {"alternate_style": True}})
    (folder / "mkdocs.yml").write_text(json.dumps(config))
    (folder / ".venv").mkdir()
    return folder


@pytest.fixture(scope="module")
def round_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round")


@pytest.fixture(scope="module")
def turn(project: Path, round_folder: Path) -> dict[str, list[Built]]:
    return versus.turns(project, ["part/one", "part/two"], round_folder)


def run_of(
    observed: float, audited: float | None, attempts: int = 1, key: str = ""
) -> types.SimpleNamespace:
    """The parts of a record that an account reads. Times in seconds."""
    process = types.SimpleNamespace(wall_seconds=audited)
    return types.SimpleNamespace(
        key=key,
        attempts=attempts,
        observed=types.SimpleNamespace(wall_seconds=observed),
        audit=None if audited is None else types.SimpleNamespace(process=process),
    )


def shown_output(site: Path, page: str) -> str:
    text = (site / "site" / page / "index.html").read_text(encoding="utf-8")
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def test_ratios_are_this_builds_over_the_others_by_medians():
    row = versus.row(
        "cold",
        {"markdown_exec": [2.0, 1.0, 90.0], "subprocess": [4.0] * 3, "this_build": [9.0, 6.0, 1.0]},
    )
    assert (row["markdown_exec_seconds"], row["this_build_seconds"]) == (2.0, 6.0)
    assert (row["over_markdown_exec"], row["over_subprocess"]) == (3.0, 1.5)
    assert row["markdown_exec_samples"] == [2.0, 1.0, 90.0]


def test_an_account_leaves_out_observing_again():
    built = Built(20.0, 2, [run_of(4.0, 3.0), run_of(1.0, None, attempts=3)])
    account = versus.account("cold", built)
    assert (account["observed_seconds"], account["audited_seconds"]) == (5.0, 3.0)
    assert account["again_seconds"] == 2.0
    assert account["observe_ratio"] == (20 - 2) / 5
    assert account["overhead_seconds"] is None  # Two audits may have run beside each other.


def test_the_overhead_is_what_one_program_did_not_take():
    account = versus.account("one edit", Built(20.0, 1, [run_of(4.0, 3.0, attempts=2)]))
    assert account["overhead_seconds"] == 20 - 4 - 4 - 3


def test_where_nothing_ran_there_is_no_ratio_and_all_is_overhead():
    account = versus.account("warm", Built(2.0, 0, []))
    assert (account["observe_ratio"], account["overhead_seconds"]) == (None, 2.0)


def rounds_taking(*cold: float) -> list[dict[str, list[Built]]]:
    return [
        {c.key: [Built(seconds, 1, [run_of(1.0, 1.0)]) for _ in versus.PHASES] for c in CONTENDERS}
        for seconds in cold
    ]


def test_a_comparison_has_a_row_for_each_phase_and_an_account_for_each_build_of_this_one():
    made = versus.compared(rounds_taking(3.0, 5.0, 4.0))
    assert [row["phase"] for row in made["rows"]] == list(versus.PHASES)
    assert made["rows"][0]["this_build_samples"] == [3.0, 5.0, 4.0]
    assert [(a["round"], a["phase"]) for a in made["accounts"]] == [
        (number, phase) for number in (1, 2, 3) for phase in versus.PHASES
    ]
    assert made["observe_ratio"] == 4.0


def test_the_lines_say_what_each_checks_and_what_the_cold_time_includes():
    made = versus.compared(rounds_taking(4.0)) | {"toolchain_seconds": 1.0}
    text = "\n".join(versus.shown(made))
    assert "markdown-exec: checked against eager: no; isolated: no" in text
    assert "a process each: checked against eager: no; isolated: yes" in text
    assert "this build: checked against eager: yes; isolated: yes" in text
    assert "cold: markdown-exec 4.0 s, a process each 4.0 s, this build 4.0 s" in text
    assert "includes warming the toolchain, timed apart at 1.0 s (25%)" in text


def test_the_three_configurations_differ_in_the_hook_alone():
    configs = [contenders.config(contender) for contender in CONTENDERS]
    hooks = [config.pop("hooks", None) for config in configs]
    for config in configs:
        del config["site_name"]
    assert configs[0] == configs[1] == configs[2]
    assert hooks == [None, None, [str(ROOT / "hooks" / "site.py")]]


def test_this_builds_fence_is_the_one_on_the_page():
    assert contenders.options_of("part/one", [PAGE]) == 'exec="on" fresh="yes" graphs="0"'
    assert contenders.options_of("part/two", [PAGE]) == 'exec="on" fresh="yes"'
    assert contenders.options_of("part/on", [PAGE]) == 'exec="on"'


def test_the_stock_plugin_gets_no_option_that_it_does_not_know(project, tmp_path):
    for contender in (MARKDOWN_EXEC, SUBPROCESS):
        site = tmp_path / contender.key
        contenders.make(contender, project, ["part/one"], site)
        assert "graphs" not in (site / "docs" / "part-one.md").read_text()


def test_every_cache_of_a_build_is_its_own_and_so_is_its_lock(tmp_path):
    made = contenders.environment(tmp_path)
    changed = {name for name, value in made.items() if os.environ.get(name) != value}
    caches = {"TORCHINDUCTOR_CACHE_DIR", "TMPDIR", "MEASURED_CACHE"}
    assert caches <= changed <= caches | {"NO_MKDOCS_2_WARNING"}
    for name in caches:
        assert Path(made[name]).is_relative_to(tmp_path)
        assert not any(Path(made[name]).iterdir())


def test_all_three_show_the_same_source_and_what_the_program_printed(turn, round_folder):
    for contender in CONTENDERS:
        text = shown_output(round_folder / contender.key, "part-one")
        assert "print('one', 6 * 7)" in text
        assert "one 42" in text
        assert "# Edited." in text


def test_only_in_the_builds_own_process_a_program_meets_what_another_left(turn, round_folder):
    def met(contender: contenders.Contender) -> bool:
        return "two left" in shown_output(round_folder / contender.key, "part-two")

    assert {c.key: met(c) for c in CONTENDERS} == {c.key: not c.isolated for c in CONTENDERS}


def test_this_build_runs_all_then_nothing_then_the_edited_one(turn):
    assert [built.executed for built in turn[THIS_BUILD.key]] == [2, 0, 1]
    made = [[each.snippet for each in built.made] for built in turn[THIS_BUILD.key]]
    assert [sorted(names) for names in made] == [["part/one", "part/two"], [], ["part/one"]]


def test_this_build_alone_checks_what_it_shows(turn):
    audited = [each.audit is not None for built in turn[THIS_BUILD.key] for each in built.made]
    assert audited == [True] * 3
    assert not any(built.made for c in (MARKDOWN_EXEC, SUBPROCESS) for built in turn[c.key])


def test_a_round_makes_a_record_that_pages_can_quote(turn):
    made = versus.compared([turn])
    headings, rows = evidence.table({"builds": made}, "builds.rows")
    assert [row[0] for row in rows] == list(versus.PHASES)
    assert all(len(row) == len(headings) for row in rows)
    assert made["observe_ratio"] > 1


def test_a_program_that_fails_ends_the_benchmark_whoever_runs_it(project, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "snippets" / "part").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text(PAGE)
    contenders.program(tmp_path, "part/one").write_text("raise SystemError('no')\n")
    for contender in (MARKDOWN_EXEC, SUBPROCESS):
        site = tmp_path / contender.key
        contenders.make(contender, tmp_path, ["part/one"], site)
        with pytest.raises(versus.click.ClickException, match=f"{contender.key} could not"):
            next(versus.phases(site, "part/one", "--strict"))


@pytest.mark.nightly
def test_a_whole_site_is_built_from_nothing_again_and_with_one_edit(project, tmp_path):
    rows = versus.of_site(project, "part/one", tmp_path)
    assert [(row["phase"], row["executed"]) for row in rows] == list(
        zip(versus.PHASES, (2, 0, 1), strict=True)
    )
    assert [row["observe_ratio"] is None for row in rows] == [False, True, False]
    assert len(evidence.table({"builds": {"site": rows}}, "builds.site")[1]) == 3
    assert "cold" in "\n".join(versus.shown_site(rows))


def test_a_whole_site_is_edited_in_a_copy(monkeypatch, project, tmp_path):
    built = []

    def build(site: Path, *_: object) -> Built:
        built.append((site, contenders.program(site, "part/one").read_text()))
        return Built(1.0, 0, [])

    monkeypatch.setattr(versus, "build", build)
    rows = versus.of_site(project, "part/one", tmp_path)
    assert [row["phase"] for row in rows] == list(versus.PHASES)
    copy = tmp_path / "project"
    edited = f"{LEAVES}\n{contenders.EDIT}"
    assert built == [(copy, LEAVES), (copy, LEAVES), (copy, edited)]
    assert contenders.program(project, "part/one").read_text() == LEAVES
    assert not (copy / ".venv").exists()


def test_every_number_that_pages_quote_is_in_a_comparison(monkeypatch, tmp_path):
    monkeypatch.setattr(versus, "turns", lambda *_: (tmp_path / "0").mkdir() or rounds_taking(3)[0])
    monkeypatch.setattr(versus, "_toolchain_seconds", lambda _: 1.0)
    made = versus._comparison(["part/one"], 1, tmp_path)
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    quoted = re.findall(r"\{\{ (builds\.[^}]+) \}\}", pages)
    assert {"builds.rows", "builds.site"} <= set(quoted)
    for expression in set(quoted) - set(evidence.TABLES):
        assert values.evaluate(values.parse(expression), {"builds": made})


def test_a_comparison_keeps_what_was_known_of_the_site_and_the_reverse(monkeypatch, tmp_path):
    monkeypatch.setattr(versus, "_comparison", lambda *_: {"rows": "new"})
    monkeypatch.setattr(versus, "of_site", lambda *_: [])
    monkeypatch.setattr(versus, "shown", lambda made: [])
    monkeypatch.setattr(versus.toolchain, "BYTECODE", "")
    out = tmp_path / "builds.json"
    out.write_text('{"rows": "old", "site": "known"}')
    run = CliRunner().invoke(versus.main, ["--out", str(out)], catch_exceptions=False)
    assert run.exit_code == 0
    assert json.loads(out.read_text()) == {"rows": "new", "site": "known"}
    CliRunner().invoke(versus.main, ["--site", "--out", str(out)], catch_exceptions=False)
    assert json.loads(out.read_text()) == {"rows": "new", "site": []}


def test_a_snippet_that_is_not_there_is_told_before_anything_is_built():
    run = CliRunner().invoke(versus.main, ["--snippets", "start/none"])
    assert run.exit_code == 1
    assert "there is no snippets/start/none.py" in run.output


def test_the_default_snippets_are_the_sites():
    assert all(contenders.program(ROOT, name).is_file() for name in versus.SNIPPETS)


@the_record
def test_the_record_follows_from_its_samples():
    for row in RECORD["rows"]:
        samples = {contender.key: row[f"{contender.key}_samples"] for contender in CONTENDERS}
        assert {len(taken) for taken in samples.values()} == {RECORD["rounds"]}
        assert row == versus.row(row["phase"], samples)
    assert sorted(RECORD["snippets"]) == sorted(versus.SNIPPETS)


@the_record
def test_by_the_record_a_build_without_a_change_ran_nothing_and_an_edit_one():
    for account in RECORD["accounts"] + RECORD["site"]:
        assert account["phase"] == "cold" or account["executed"] == (account["phase"] != "warm")


@the_record
def test_by_the_record_a_cold_build_of_the_site_takes_at_most_so_much_longer_than_observing():
    ratios = [row["observe_ratio"] for row in RECORD["site"] if row["phase"] == "cold"]
    assert all(ratio <= 1.8 for ratio in ratios)
