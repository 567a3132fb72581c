"""Charts: what they show, how they are drawn, and what an author is told who asks for nonsense."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from measured import captured, chart_data, chart_spec, charts, machine
from measured.chart_data import Data
from measured.record import (
    SCHEMA,
    Books,
    Compile,
    Conditions,
    Figure,
    Line,
    Process,
    RunRecord,
    Timing,
)
from measured.snippets import Mistake

# The helpers of that file, without its tests and fixtures.
_spec = importlib.util.spec_from_file_location("sites", Path(__file__).with_name("test_site.py"))
sites = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sites)

SVG = "{http://www.w3.org/2000/svg}"


def a_record(**parts) -> RunRecord:
    process = Process("finished", "", 1.0, 0.5, 1 << 20, "hi\n")
    made = RunRecord(
        SCHEMA, "key", "a/b", "print()", {}, "2026-01-02T00:00:00+00:00", machine.describe(),
        process, 1, Conditions(0.0, 0.0, 0.0, 0, None), Books([], []), None, {}, [], [], None,
    )  # fmt: skip
    return msgspec.structs.replace(made, **parts)


def timing(case: str, side: str, *samples: float, label: str = "gelu", threads: int = 1) -> Timing:
    return Timing(label, case, side, threads, 10, list(samples), list(range(len(samples))))


def a_compile(name: str, compile_id: str, *phases: float, backward: bool = False) -> Compile:
    return Compile(
        0, compile_id, name, "x.py", 1, 3, backward, None, None, sum(phases), *phases, 0, 1
    )


SWEEP = a_record(
    timings=[
        timing(f"{size} floats", side, *(base * size * step for step in (1.0, 1.1, 1.2)))
        for size in (16, 256, 4096)
        for side, base in (("eager", 4e-8), ("compiled", 1e-8))
    ]
)
COMPILES = a_record(
    books=Books(
        [
            a_compile("f", "0/0", 0.5, 0.25, 1.0, 2.0, 0.0),
            a_compile("f", "0/0", 0.0, 0.25, 1.0, 2.0, 0.0, backward=True),
        ],
        [],
    ),
    warm=Books([a_compile("f", "0/0", 0.5, 0.25, 0.0, 0.0, 0.0)], []),
)
CALLS = a_record(values={"calls": [2.0, 1e-5, 1.2e-5, 1.1e-5]})
RECORDS = {"a/sweep": SWEEP, "a/compiles": COMPILES, "a/calls": CALLS, "a/plain": a_record()}

FENCES = {
    "bars": 'kind = "bars"\nof = "a/sweep"\ntitle = "Bars & <bars>"',
    "sweep": 'kind = "sweep"\nof = "a/sweep"\ntitle = "Sweep"',
    "ratio": 'kind = "sweep"\nof = "a/sweep"\ny = "ratio"\ntitle = "Ratio"',
    "phases": 'kind = "phases"\nof = "a/compiles"\ntitle = "Phases"',
    "graphs": 'kind = "phases"\nof = "a/compiles"\nper = "graph"\ntitle = "Graphs"',
    "calls": 'kind = "calls"\nof = "a/calls.calls"\ntitle = "Calls"',
}


def data_of(fence: str, records: dict[str, RunRecord] = RECORDS) -> Data:
    data = chart_data.make(chart_spec.parse(fence), records)
    assert data is not None
    return data


def shown(fence: str) -> list[list[str]]:
    return data_of(fence).shown_rows


def test_bars_show_median_and_quartiles_of_each_side():
    data = data_of(FENCES["bars"])
    assert [column.heading for column in data.columns] == [
        "what", "case", "side", "median", "1st quartile", "3rd quartile", "n", "noisy",
    ]  # fmt: skip
    assert data.shown_rows[:2] == [
        ["gelu", "16 floats", "eager", "704 ns", "672 ns", "736 ns", "3", ""],
        ["gelu", "16 floats", "compiled", "176 ns", "168 ns", "184 ns", "3", ""],
    ]
    assert [group.name for group in data.plot.groups] == ["16 floats", "256 floats", "4096 floats"]


def test_a_sweep_has_a_row_for_each_side_and_number():
    assert shown(FENCES["sweep"])[:2] == [
        ["eager", "16", "704 ns", "672 ns", "736 ns", "3", ""],
        ["eager", "256", "11.3 µs", "10.8 µs", "11.8 µs", "3", ""],
    ]
    assert shown(FENCES["sweep"])[-1][:3] == ["compiled", "4,096", "45.1 µs"]


def test_a_ratio_pairs_the_samples_of_both_sides_round_by_round():
    # The medians of the two sides are equal; the rounds tell another story.
    rounds = a_record(
        timings=[
            timing(case, side, *samples)
            for case in ("1 row", "2 rows")
            for side, samples in (("eager", (2.0, 3.0, 9.0)), ("compiled", (1.0, 3.0, 3.0)))
        ]
    )
    rows = data_of(FENCES["ratio"], {"a/sweep": rounds}).rows
    assert rows[0] == ["eager / compiled", 1, 2.0, 1.5, 2.5, 3, ""]


def test_phases_show_the_cold_and_the_warm_start():
    assert shown(FENCES["phases"]) == [
        ["a/compiles cold", "7.00 s", "500 ms", "500 ms", "2.00 s", "4.00 s", "0 s"],
        ["a/compiles warm", "750 ms", "500 ms", "250 ms", "0 s", "0 s", "0 s"],
    ]


def test_phases_per_graph_show_every_compile():
    rows = shown(FENCES["graphs"])
    assert [row[:2] for row in rows] == [["f 0/0", "3.75 s"], ["f 0/0 backward", "3.25 s"]]


def test_calls_show_each_call():
    assert shown(FENCES["calls"])[:2] == [["1", "2.00 s"], ["2", "10.0 µs"]]
    assert "slowest 2.00 s (call 1)" in data_of(FENCES["calls"]).description


def test_threads_are_a_side_of_their_own_where_there_are_several():
    two = a_record(timings=[timing("", "eager", 1.0, threads=n) for n in (1, 2)])
    rows = data_of(FENCES["bars"], {"a/sweep": two}).shown_rows
    assert [row[2] for row in rows] == ["eager, 1 thread", "eager, 2 threads"]


def test_a_noisy_series_is_marked():
    wild = [1.0, 3.0] * 8
    record = a_record(timings=[timing("", "eager", *wild), timing("", "compiled", *[1.0] * 16)])
    data = data_of(FENCES["bars"], {"a/sweep": record})
    assert data.noisy == ["gelu eager: IQR is 100% of the median"]
    assert [row[-1] for row in data.shown_rows] == ["noisy", ""]


def test_nothing_is_shown_of_what_was_not_run():
    both = 'kind = "phases"\nof = ["a/compiles", "a/gpu"]\ntitle = "T"'
    assert data_of(both).missing == ["a/gpu"]
    assert chart_data.make(chart_spec.parse(FENCES["bars"]), {}) is None


@pytest.mark.parametrize(
    ("fence", "message"),
    [
        ("kind = bars", "this is none"),
        ('kind = "pie"\nof = "a"\ntitle = "T"', 'unknown kind "pie" of chart; known: bars, sweep'),
        (FENCES["bars"] + '\ny = "ratio"', 'unknown key "y" for a chart of kind bars'),
        (FENCES["ratio"].replace("ratio", "log"), '"time" or "ratio"'),
        ('kind = "bars"\ntitle = "T"', "of: a chart of kind bars"),
        ('kind = "bars"\nof = ["a", "a"]\ntitle = "T"', "named twice"),
        ('kind = "calls"\nof = ["a.b"]\ntitle = "T"', 'one "part/name.value"'),
        ('kind = "bars"\nof = "a"', "needs title"),
    ],
)
def test_a_fence_that_can_not_be_right_is_a_mistake(fence, message):
    with pytest.raises(Mistake, match=re.escape(message)):
        chart_spec.parse(fence)


@pytest.mark.parametrize(
    ("fence", "timings", "message"),
    [
        (FENCES["bars"], [], "timed nothing"),
        (FENCES["sweep"], [timing("many", "eager", 1.0)], "a number at the start of each case"),
        (FENCES["sweep"], [timing("1 row", "eager", 1.0)], "at least two cases"),
        (
            FENCES["sweep"],
            [timing("1 row", "eager", 1.0), timing("1 line", "eager", 1.0)],
            "two cases at 1",
        ),
        (FENCES["ratio"], [timing("1", "eager", 1.0), timing("2", "eager", 1.0)], "two sides"),
        (
            FENCES["ratio"],
            [timing("1", "eager", 1.0, 2.0), timing("1", "compiled", 1.0)],
            "at 1 there are 2 and 1",
        ),
    ],
)
def test_timings_that_a_chart_can_not_draw_are_a_mistake(fence, timings, message):
    with pytest.raises(Mistake, match=re.escape(message)):
        data_of(fence, {"a/sweep": a_record(timings=timings)})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.0, "no list of seconds"),
        ([], "no list of seconds"),
        ([1.0, "x"], "call 2 took 'x'"),
        ([1.0, -1.0], "call 2 took -1.0"),
        ([1.0] * (chart_data.MOST_CALLS + 1), "4000 at most"),
    ],
)
def test_calls_are_a_list_of_seconds(value, message):
    with pytest.raises(Mistake, match=message):
        data_of(FENCES["calls"], {"a/calls": a_record(values={"calls": value})})


def test_two_snippets_that_time_the_same_are_no_series():
    fence = 'kind = "bars"\nof = ["a/sweep", "a/more"]\ntitle = "T"'
    with pytest.raises(Mistake, match='a/sweep and a/more both time "gelu 16 floats eager"'):
        data_of(fence, {"a/sweep": SWEEP, "a/more": SWEEP})


def test_files_hold_the_numbers_unrounded():
    data = data_of(FENCES["sweep"])
    rows = list(csv.DictReader(io.StringIO(chart_data.as_csv(data))))
    assert float(rows[0]["median_seconds"]) == SWEEP.timings[0].median
    told = json.loads(chart_data.as_json(data))
    assert told["rows"][0]["median_seconds"] == SWEEP.timings[0].median
    assert told["sources"] == [
        {
            "snippet": "a/sweep",
            "cpu": machine.describe().cpu,
            "gpu": machine.describe().gpu,
            "torch": machine.describe().torch,
            "date": "2026-01-02",
        }
    ]


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, charts.Drawing]:
    folder = tmp_path_factory.mktemp("drawings")
    return {
        name: charts.drawing(data_of(fence), f"chart-{name}", folder)
        for name, fence in FENCES.items()
    }


@pytest.mark.parametrize("kind", FENCES)
def test_a_chart_is_drawn_for_wide_and_for_narrow_pages(drawings, kind):
    for layout, width in (("wide", 680), ("narrow", 320)):
        root = ET.fromstring(getattr(drawings[kind], layout))
        assert root.get("class") == f"chart-{layout}"
        assert root.get("width") == str(width)
        sizes = [float(s) for s in re.findall(r"font-size:([\d.]+)px", ET.tostring(root).decode())]
        assert sizes
        assert min(sizes) >= 11


@pytest.mark.parametrize("kind", FENCES)
def test_the_page_decides_on_colours_and_fonts(drawings, kind):
    for drawn in (drawings[kind].wide, drawings[kind].narrow):
        addresses_aside = re.sub(r'url\(#[^)]*\)|href="#[^"]*"', "", drawn)
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", addresses_aside)
        assert "var(--chart-ink)" in drawn
        assert "font-family" not in drawn
        assert "<style" not in drawn


def test_sides_differ_by_more_than_their_colour(drawings):
    assert "<pattern" in drawings["bars"].wide
    assert "<pattern" in drawings["phases"].wide
    assert "stroke-dasharray" in drawings["sweep"].wide


@pytest.mark.parametrize("kind", FENCES)
def test_a_drawing_has_title_and_description_and_no_prolog(drawings, kind):
    root = ET.fromstring(drawings[kind].wide)
    title, description = root[0], root[1]
    assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == data_of(FENCES[kind]).title
    assert description.text == data_of(FENCES[kind]).description
    assert drawings[kind].wide.startswith("<svg")


def test_ids_are_unique_on_a_page_and_every_reference_has_one(drawings):
    page = "".join(drawn.wide + drawn.narrow for drawn in drawings.values())
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    references = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', page)
    assert references
    assert {address or href for address, href in references} <= set(ids)


DRAW_ALL = """
import sys
from pathlib import Path
import msgspec
from measured import charts
from measured.chart_data import Data
for number, data in enumerate(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[Data])):
    sys.stdout.write(charts.drawing(data, f"c{number}", Path(sys.argv[2])).wide)
    sys.stdout.write(charts.drawing(data, f"c{number}", Path(sys.argv[2])).narrow)
"""


def test_the_same_data_gives_the_same_bytes_in_another_process(tmp_path):
    (tmp_path / "data").write_bytes(msgspec.json.encode([data_of(f) for f in FENCES.values()]))
    drawn = [
        subprocess.run(
            [sys.executable, "-c", DRAW_ALL, str(tmp_path / "data"), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(drawn[0]) > 10_000
    assert drawn[0] == drawn[1]


def test_what_was_drawn_once_is_not_drawn_again(tmp_path, monkeypatch):
    data = data_of(FENCES["sweep"])
    first = charts.drawing(data, "c", tmp_path)
    monkeypatch.setattr(charts, "_draw", lambda *_: pytest.fail("drawn again"))
    assert charts.drawing(data, "c", tmp_path) == first


@pytest.mark.parametrize("damage", [lambda b: b[:-10], lambda b: b.replace(b"eager", b"Eager", 1)])
def test_a_damaged_drawing_is_drawn_again(tmp_path, damage):
    data = data_of(FENCES["sweep"])
    first = charts.drawing(data, "c", tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert charts.drawing(data, "c", tmp_path) == first
    assert path.read_bytes() == whole


def test_a_captured_figure_follows_the_page():
    raw = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 200"><path id="p" '
        'style="fill: #ffffff; stroke: #000000"/><path style="stroke: #1f77b4"/></svg>'
    )
    figure = Figure(raw, "T", "size", "ms", [Line("eager", [1.0, 2.0], [0.5, 0.25])])
    made = captured.shown(figure, "f")
    assert "fill:var(--chart-ground);stroke:currentColor" in made.svg
    assert "stroke:var(--chart-c0)" in made.svg
    assert "ms by size. eager: 2 points, from 0.2500 to 0.5000" in made.svg
    assert made.headings == ["series", "size", "ms"]
    assert made.rows == [["eager", "1", "0.5000"], ["eager", "2", "0.2500"]]


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot

    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def drawn() -> list[Figure]:
    from measured import figures

    return list(figures.drawn())


def test_every_open_figure_is_captured_with_the_data_of_its_lines_bars_and_dots(pyplot):
    _, axes = pyplot.subplots(1, 3)
    axes[0].plot([0, 1, 2], [1.0, float("nan"), 3.0], label="kept")
    axes[1].set_title("B")
    axes[1].barh(["x", "y"], [4, 5], label="bars")
    axes[2].scatter([7], [8], label="dots")
    pyplot.figure().suptitle("second")
    first, second = drawn()
    assert first.lines == [
        Line("kept", [0.0, 2.0], [1.0, 3.0]),
        Line("B: bars", ["x", "y"], [4.0, 5.0]),
        Line("dots", [7.0], [8.0]),
    ]
    assert (first.title, second.title) == ("B", "second")


def test_a_figure_is_captured_in_the_same_bytes_again(pyplot):
    pyplot.bar([1, 2], [3, 4], hatch="//")
    (first,), (second,) = drawn(), drawn()
    assert first.svg == second.svg
    assert "<text" in first.svg


def test_a_figure_that_is_too_large_keeps_its_data_only(pyplot, monkeypatch):
    from measured import figures

    monkeypatch.setattr(figures, "SVG_BYTES", 1000)
    monkeypatch.setattr(figures, "LINE_POINTS", 3)
    pyplot.plot([1, 2], [3, 4])
    pyplot.plot(range(4), range(4), label="long")
    (figure,) = drawn()
    assert figure.svg == ""
    assert "was not kept; long has 4 points" in figure.note
    assert [line.y for line in figure.lines] == [[3.0, 4.0]]
    assert captured.shown(figure, "f").svg is None


def test_a_figure_that_matplotlib_can_not_draw_says_so_and_prints_nothing(pyplot, capfd):
    pyplot.plot([1, 2], [3, 4])
    pyplot.title("$\\nonsense{$")
    (figure,) = drawn()
    assert figure.svg == ""
    assert "matplotlib could not draw it: ValueError" in figure.note
    assert capfd.readouterr() == ("", "")


TIMES = """
from torch.utils.benchmark import Timer

for case in ("1 number", "50 numbers"):
    for side in ("eager", "compiled"):
        Timer("sum(range(100))", label="sum", sub_label=case, description=side).timeit(10)
"""

PLOTS = """
import os

import matplotlib.pyplot as plt

os.environ["DISPLAY"] = ":0"  # Where there is one, show() warns that Agg can not.

plt.plot([1, 2, 4], [3.0, 5.5, 9.0], label="eager")
plt.axhline(4)
plt.xlabel("size")
plt.ylabel("ms")
plt.suptitle("Time & size")
plt.legend()
plt.figure()
plt.bar(["relu", "gelu"], [1, 2.5])
plt.title("By name, 名前")  # Glyphs that matplotlib's font lacks: it warns.
plt.show()
calls = [0.5, 0.001, 0.001]
print("plotted")
"""

PLAIN = """
import atexit, sys

atexit.register(lambda: print("matplotlib" in sys.modules))
"""


def fence(body: str) -> str:
    return f"```chart\n{body}\n```\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cache: Path):
    text = "\n".join(
        fence(body)
        for body in (
            'kind = "bars"\nof = "index#1"\ntitle = "Sums"',
            'kind = "sweep"\nof = "index#1"\ny = "ratio"\ntitle = "More sums"',
            'kind = "calls"\nof = "part/plots.calls"\ntitle = "Calls"',
            'kind = "bars"\nof = "index#3"\ntitle = "On a GPU"',
        )
    )
    plots = '\n```python exec="on" fresh="yes"\n--8<-- "part/plots.py"\n```\n'
    example = f"\n````markdown\n{fence(FENCES['bars'])}````\n"
    fences = [("", TIMES), ("", PLAIN), ('needs="cuda"', "x = 1")]
    made = sites.make_site(
        tmp_path_factory.mktemp("charts"),
        {"index.md": sites.page(*fences, text=text) + plots + example},
        {"plots.py": PLOTS},
    )
    return made, sites.mkdocs(made, cache, "build", "--strict")


@pytest.fixture(scope="module")
def html(site) -> str:
    folder, result = site
    assert result.returncode == 0, result.stderr
    return (folder / "site" / "index.html").read_text()


def test_a_page_shows_its_charts_with_caption_table_and_downloads(site, html):
    assert html.count('<figure class="measured-chart"') == 4
    start = html.index('id="chart-sums"')
    chart = html[start : html.index("</figure>", start)]
    text = sites.text_of(chart)
    for fact in (machine.describe().cpu, f"torch {machine.describe().torch}", "n = 1, 1 thread"):
        assert fact in text
    assert 'href="records/index-1.json"' in chart
    assert "1st quartile" in text
    files = re.findall(r'href="(charts/[^"]*)" download', chart)
    assert files == ["charts/index/sums.csv", "charts/index/sums.json"]
    table = (site[0] / "site" / files[0]).read_text()
    assert table.startswith("label,case,side,median_seconds")
    assert table.count("\n") == 5
    assert len(json.loads((site[0] / "site" / files[1]).read_text())["rows"]) == 4


def test_ids_of_a_page_with_charts_and_figures_are_unique(html):
    ids = re.findall(r'\bid="([^"]*)"', html[html.index("<article") : html.index("</article")])
    assert sorted(ids) == sorted(set(ids))


def test_a_chart_of_what_needs_another_device_says_so(html):
    start = html.index('id="chart-on-a-gpu"')
    assert "not run here" in html[start : html.index("</figure>", start)] or machine.has_cuda()


def unquoted(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html).replace("&quot;", '"')


def test_an_example_of_a_chart_is_shown_as_code(html):
    assert 'title = "Bars &amp; &lt;bars&gt;"' in unquoted(html)
    assert "fenceline" not in html


def test_a_figure_of_a_snippet_is_captured(site, html):
    record = json.loads((site[0] / "site" / "records" / "part" / "plots.json").read_text())
    assert record["observed"]["output"] == "plotted\n"
    first, second = record["figures"]
    assert (first["title"], first["x_label"], first["y_label"]) == ("Time & size", "size", "ms")
    assert first["lines"] == [{"label": "eager", "x": [1.0, 2.0, 4.0], "y": [3.0, 5.5, 9.0]}]
    assert second["title"] == "By name, 名前"
    assert second["lines"] == [{"label": "", "x": ["relu", "gelu"], "y": [1.0, 2.5]}]
    assert html.count('<figure class="measured-figure"') == 2
    start = html.index('<figure class="measured-figure"')
    figure = html[start : html.index("</figure>", start)]
    assert "Time &amp; size</title>" in figure
    assert "var(--chart-c0)" in figure
    assert "<td>5.500</td>" in figure


def test_a_snippet_without_a_figure_imports_no_matplotlib(site, html):
    record = json.loads((site[0] / "site" / "records" / "index-2.json").read_text())
    assert record["observed"]["output"] == "False\n"
    assert record["figures"] == []


def test_a_second_build_draws_nothing_and_gives_the_same_page(site, html, cache):
    drawn = sorted((path, path.stat().st_mtime_ns) for path in (cache / "charts").iterdir())
    assert len(drawn) == 3
    checker = site[0] / "checker"
    checker.mkdir()
    (checker / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        "atexit.register(lambda: print('matplotlib imported:', 'matplotlib' in sys.modules))\n"
    )
    result = sites.mkdocs(site[0], cache, "build", env={"PYTHONPATH": str(checker)})
    assert "0 executed now" in result.stderr
    assert result.stdout.strip().endswith("matplotlib imported: False")
    assert sorted((p, p.stat().st_mtime_ns) for p in (cache / "charts").iterdir()) == drawn
    assert (site[0] / "site" / "index.html").read_text() == html


def chart_lines(site: Path) -> list[int]:
    lines = (site / "docs" / "index.md").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if "```chart" in line]


def test_mistakes_in_fences_are_told_with_page_and_line_before_anything_runs(tmp_path, cache):
    fences = (
        fence('kind = "pie"\nof = "index#1"\ntitle = "T"'),
        fence('kind = "bars"\nof = "part/none"\ntitle = "U"'),
        fence('kind = "bars"\nof = "index#1"\ntitle = "V"'),
        fence('kind = "phases"\nof = "index#1"\ntitle = "v"'),
        '```chart title="W"\n```\n',
        "```chart {wide\n```\n",
    )
    site = sites.make_site(
        tmp_path / "site", {"index.md": sites.page(("", "x = 1"), text="\n".join(fences))}
    )
    result = sites.mkdocs(site, cache, "build")
    lines = chart_lines(site)
    assert result.returncode == 1
    assert "running" not in result.stderr
    for line, said in zip(
        [lines[0], lines[1], lines[3], lines[4], lines[5]],
        [
            'unknown kind "pie"',
            "of: no snippet part/none runs on this site",
            f'another chart of this page is called "v"; it stands at index.md:{lines[2]}',
            "title: a chart's options stand in its fence's body",
            "this looks like an executed fence, a chart or a value",
        ],
        strict=True,
    ):
        assert f"index.md:{line}: {said}" in result.stderr


def test_data_that_a_chart_can_not_draw_fails_the_build_with_page_and_line(tmp_path, cache):
    fences = (
        fence('kind = "bars"\nof = "index#1"\ntitle = "T"'),
        '!!! note\n\n    ```chart\n    kind = "phases"\n    of = "index#1"\n    title = "U"\n    ```\n',
        fence('kind = "calls"\nof = "index#1.x"\ntitle = "V"'),
        fence('kind = "calls"\nof = "part/a.y"\ntitle = "W"'),
    )
    site = sites.make_site(
        tmp_path / "site",
        {
            "index.md": sites.page(("", "x = 1"), text="\n".join(fences))
            + '\n```python exec="on" fresh="yes"\n--8<-- "part/a.py"\n```\n'
        },
        {"a.py": "x = 1\n"},
    )
    config = site / "mkdocs.yml"
    config.write_text(config.read_text() + "  - admonition\n")
    fences_of = (site / "docs" / "index.md").read_text()
    (site / "docs" / "index.md").write_text(fences_of.replace("index#1.x", "part/a.x"))
    result = sites.mkdocs(site, cache, "build")
    lines = chart_lines(site)
    assert result.returncode == 1
    for line, said in zip(
        lines,
        [
            "index#1 timed nothing with torch.utils.benchmark",
            "index#1 compiled nothing",
            "part/a.x is no list of seconds",
            "part/a.y: no value y",
        ],
        strict=True,
    ):
        assert f"index.md:{line}: {said}" in result.stderr


def test_a_chart_from_an_included_markdown_file_is_told(tmp_path, cache):
    site = sites.make_site(tmp_path / "site", {"index.md": '--8<-- "part/b.md"\n'})
    (site / "snippets" / "part" / "b.md").write_text(fence(FENCES["bars"]))
    result = sites.mkdocs(site, cache, "build")
    assert result.returncode == 1
    assert "comes from an included Markdown" in result.stderr


def test_a_drawing_that_fails_is_a_failure_of_the_build(tmp_path, cache):
    site = sites.make_site(
        tmp_path / "site",
        {
            "index.md": fence('kind = "calls"\nof = "part/a.x"\ntitle = "T"')
            + '\n```python exec="on" fresh="yes"\n--8<-- "part/a.py"\n```\n'
        },
        {"a.py": "x = [1.0, 2.0]\n"},
    )
    config = site / "mkdocs.yml"
    (site / "sabotage.py").write_text(
        "from measured import charts\n\n\ndef _draw(*_):\n    raise OSError('no ink')\n\n\n"
        "charts._draw = _draw\n"
    )
    config.write_text(config.read_text().replace("hooks: [", "hooks: [sabotage.py, "))
    result = sites.mkdocs(site, cache, "build")
    assert result.returncode == 1
    assert "index.md:1: could not be drawn: OSError: no ink" in result.stderr
