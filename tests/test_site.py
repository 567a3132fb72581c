"""Markdown in, pages out: two small sites, built with MkDocs as a user builds them."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

import pytest
from sites import make_site, mkdocs, page

GOOD = """
import torch


@torch.compile
def f(x):
    return (x.sin() + 1) * 2


x = torch.linspace(0, 1, 300, requires_grad=True)
y = f(x)
y.sum().backward()
answer = 42
share = 0.25
print("the sum is", round(y.sum().item(), 2))
"""

WRONG = """
import torch


def backend(graph, inputs):
    def run(*args):
        outputs = graph(*args)
        outputs[0][7] += 1e-2
        return outputs
    return run


@torch.compile(backend=backend)
def f(x):
    return (x.sin() + 1) * 2


f(torch.ones(300))
print("done")
"""

WRONG_GRADIENT = """
import torch


class Spoil(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        grad[3] += 1e-2
        return grad


def backend(graph, inputs):
    return lambda *args: [Spoil.apply(out) for out in graph(*args)]


@torch.compile(backend=backend)
def f(x):
    return x.sin()


x = torch.ones(5, requires_grad=True)
f(x).sum().backward()
"""

REFUSES = """
import torch


@torch.compile(fullgraph=True, backend="eager")
def f(x):
    print("no")
    return x + 1


f(torch.ones(2))
"""


DECLARED = 'diverges="value" upstream="pytorch#117265"'


def line_of(site: Path, name: str, fence: int = 1) -> int:
    lines = (site / "docs" / name).read_text().splitlines()
    return [i for i, line in enumerate(lines, 1) if line.startswith("```python exec")][fence - 1]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, cache: Path):
    """A site on which everything goes wrong that can, and one page is right."""
    site = make_site(
        tmp_path_factory.mktemp("broken"),
        {
            "index.md": page(text="{{ none.x }} {{ right#1.y }}"),
            "right.md": page(('graphs="0"', "answer = 42\nprint('kept')")),
            "wrong.md": page(('graphs="1"', WRONG)),
            "gradient.md": page(("", WRONG_GRADIENT)),
            "mended.md": page((DECLARED, WRONG.replace("+= 1e-2", "+= 0"))),
            "endings.md": page(
                ("", "raise KeyError('missing')"),
                ('timeout="1"', "import time; time.sleep(600)"),
                ("", "import sys; sys.exit(0)"),
                ("", "import os; os._exit(0)"),
                ("", "import os; os.kill(os.getpid(), 11)"),
                ("", "print('x' * (200 << 20))"),
            ),
            "refused.md": page(
                ('raises="torch._dynamo.exc.Unsupported"', REFUSES),
                ("", REFUSES.replace("no", "na")),
            ),
            "expected.md": page(
                ('graphs="2"', "x = 1"), ('breaks="1"', "x = 2"), ('raises="KeyError"', "x = 3")
            ),
        },
    )
    return site, mkdocs(site, cache, "build")


def failure(broken, name: str, fence: int = 1) -> str:
    """The lines of the failure list that speak of one fence."""
    site, result = broken
    start = f"  {name}:{line_of(site, name, fence)}:"
    lines = result.stderr.splitlines()
    found = [i for i, line in enumerate(lines) if line.startswith(start)]
    assert found, result.stderr
    end = found[-1] + 1
    while end < len(lines) and lines[end].startswith("      "):
        end += 1
    return "\n".join(lines[found[0] : end])


def test_a_build_with_failures_is_red(broken):
    assert broken[1].returncode == 1


def test_a_wrong_element_names_page_line_tensor_and_sizes(broken):
    told = failure(broken, "wrong.md")
    assert "call 1 of f: result diverges from eager (value): 1 of 300 elements differ" in told
    assert "torch.float32 (300,)" in told
    assert re.search(r"at \(7,\): eager 3\.68\d+, compiled 3\.69\d+, float64 3\.68\d+", told)
    assert "0.01 absolute" in told
    assert "ULP" in told


def test_a_wrong_gradient_names_the_tensor(broken):
    told = failure(broken, "gradient.md")
    assert "gradient of args[0] diverges from eager (value): 1 of 5 elements differ" in told


def test_a_declared_difference_that_upstream_mended_is_red(broken):
    assert 'declared diverges="value", measured nothing' in failure(broken, "mended.md")


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        (1, "raised: KeyError"),
        (2, "did not end in time: still running after 1 s"),
        (3, "ended before its end: sys.exit(0) before its last line"),
        (4, "ended before its end: left with status 0 before its last line"),
        (5, "died: SIGSEGV"),
        (6, "printed too much: printed more than 1 MiB"),
    ],
)
def test_each_bad_ending_costs_one_clear_line(broken, fence, said):
    assert said in failure(broken, "endings.md", fence).splitlines()[0]


def test_a_declared_exception_passes_and_an_undeclared_one_does_not(broken):
    site, result = broken
    assert f"refused.md:{line_of(site, 'refused.md', 1)}:" not in result.stderr
    assert "raised: torch._dynamo.exc.Unsupported" in failure(broken, "refused.md", 2)


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        (1, 'declared graphs="2", measured 0'),
        (2, 'declared breaks="1", measured 0'),
        (3, 'finished; declared raises="KeyError"'),
    ],
)
def test_a_count_that_is_not_what_was_declared(broken, fence, said):
    assert said in failure(broken, "expected.md", fence)


def test_unknown_values_name_page_and_line(broken):
    stderr = broken[1].stderr
    assert "index.md:7: {{ none.x }}: no snippet none runs on this site" in stderr
    assert "index.md:7: {{ right#1.y }}: expected part/name.value" in stderr


def test_every_failure_is_listed_once(broken):
    listed = [line for line in broken[1].stderr.splitlines() if re.match(r"  \w+\.md:\d+:", line)]
    assert len(listed) == len(set(listed)) == 15
    assert "15 failures" in broken[1].stderr


def test_the_results_of_the_others_are_kept(broken):
    site, _ = broken
    assert "kept" in (site / "site" / "right" / "index.html").read_text()
    report = json.loads((site / "site" / "report.json").read_text())
    verdicts = {entry["snippet"]: entry["verdict"] for entry in report["snippets"]}
    assert len(verdicts) == report["declared"] == 15
    assert verdicts["right#1"] == "nothing compiled"
    assert verdicts["refused#1"] == "refused"
    assert verdicts["wrong#1"] == "failed"
    assert report["passed"] is False
    assert report["build"]["divergences"] == 2
    assert report["machine"]["cores"] >= 1
    assert report["rule"]["ulp_limit"] == 16


def test_no_flag_turns_the_build_green(broken, cache):
    site, _ = broken
    for name in ("endings.md", "index.md", "expected.md", "refused.md", "gradient.md"):
        (site / "docs" / name).unlink()
    (site / "docs" / "index.md").write_text("# Home\n")
    for flags in (["-q"], ["--strict", "-q"]):
        result = mkdocs(site, cache, "build", *flags)
        assert result.returncode == 1, flags
        place = f"wrong.md:{line_of(site, 'wrong.md')}"
        assert f"{place}: wrong#1: call 1 of f: result diverges" in result.stderr, flags


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, cache: Path):
    """A site on which all is well."""
    site = make_site(
        tmp_path_factory.mktemp("good"),
        {
            "index.md": (
                "# Home\n\nThe answer is {{ part/good.answer | count }}, {{ part/good.share | percent }}; "
                "`{{ code }}`.\n\n"
                '```python exec="on" graphs="1" breaks="0" recompiles="0" title="good.py"\n'
                '--8<-- "part/good.py"\n```\n\n'
                '```python exec="on" needs="cuda"\nprint("on a GPU")\n```\n\n'
                '````markdown\n```python exec="on"\nprint(1)\n```\n````\n'
            ),
            "differs.md": page((f'{DECLARED} graphs="1"', WRONG)),
            "list.md": "# All\n\nThese:\n\n{{ build.differences }}\n",
        },
        {"good.py": GOOD},
    )
    return site, mkdocs(site, cache, "build", "--strict")


@pytest.fixture(scope="module")
def home(good) -> str:
    site, result = good
    assert result.returncode == 0, result.stderr
    return (site / "site" / "index.html").read_text()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


def test_a_page_shows_source_output_and_values(home):
    text = text_of(home)
    assert "return (x.sin() + 1) * 2" in text.replace("\u200b", "")
    assert re.search(r"the sum is \d+", text)
    assert "The answer is 42, 25.0 %; {{ code }}." in text


def test_options_of_ours_do_not_show(home):
    for option in ("fresh=", "graphs=", "breaks=", "fenceline"):
        assert option not in text_of(home)


def test_an_example_of_a_fence_is_shown_and_not_run(home):
    assert '```python exec="on"' in text_of(home).replace("&quot;", '"')
    assert home.count('class="measured"') == 2


def test_the_receipt_holds_the_facts(good, home):
    receipt = text_of(home[home.index('<details class="receipt"') :])
    from measured import machine

    here = machine.describe()
    for fact in (
        "✓ agrees with eager", "1 graph", "0 breaks", "0 recompilations", here.cpu, here.torch,
        "Dynamo", "AOTAutograd", "Inductor", "C++", "1 of 1 compiled calls checked", "ULP", "wall",
        "python snippets/part/good.py",
    ):  # fmt: skip
        assert fact in receipt, fact


def test_the_receipt_and_the_values_lead_to_the_record(good, home):
    site, _ = good
    assert 'href="records/part/good.json"' in home
    record = json.loads((site / "site" / "records" / "part" / "good.json").read_text())
    assert record["values"]["answer"] == 42
    assert record["books"]["compiles"][0]["cpp_seconds"] > 0


def test_what_needs_another_device_says_that_it_was_not_run(home):
    from measured import machine

    if machine.has_cuda():
        assert "on a GPU" in text_of(home)
    else:
        assert "not run here" in text_of(home)
        assert "needs a CUDA device" in text_of(home)


def test_a_declared_difference_is_a_badge_above_the_code_and_evidence_in_the_receipt(good, home):
    html = (good[0] / "site" / "differs" / "index.html").read_text()
    block = html[html.index('data-verdict="diverges as declared"') :]
    badge = block[: block.index("import")]
    assert "diverges from eager: value · pytorch#117265" in text_of(badge)
    assert 'href="https://github.com/pytorch/pytorch/issues/117265"' in badge
    receipt = text_of(block[block.index('<details class="receipt"') :])
    assert "≠ diverges as declared" in receipt
    assert re.search(
        r"call 1 of f: result diverges from eager \(value\): 1 of 300 elements differ .*"
        r"at \(7,\): eager 3\.68\d+, compiled 3\.69\d+, float64 3\.68\d+; largest difference: 0\.01",
        receipt,
    )


@pytest.mark.parametrize(
    ("flags", "path", "link"),
    [
        ([], "list/index.html", "../differs/#differs-1"),
        (["--no-directory-urls"], "list.html", "differs.html#differs-1"),
    ],
)
def test_the_table_lists_what_diverges_as_declared(good, home, cache, tmp_path, flags, path, link):
    result = mkdocs(good[0], cache, "build", "--strict", *flags, "-d", str(tmp_path))
    assert result.returncode == 0, result.stderr
    html = (tmp_path / path).read_text()
    table = html[html.index("<table>") : html.index("</table>")]
    (row,) = re.findall(r"<tr>\s*<td>.*?</tr>", table, flags=re.S)
    assert f'href="{link}"' in row
    cells = [text_of(cell).strip() for cell in re.findall(r"<td.*?</td>", row, flags=re.S)]
    assert cells[:3] == ["differs#1", "value", "call 1 of f: result at (7,)"]
    assert [float(cell) for cell in cells[3:5]] == pytest.approx([3.683, 3.693], abs=1e-3)
    assert float(cells[5]) > 16
    assert re.fullmatch(r"pytorch#117265torch \d+\.\d+\S*", cells[6])
    assert "<p><div" not in html.replace("\n", "")


def test_a_declared_difference_is_in_the_report_and_no_divergence(good, home):
    report = json.loads((good[0] / "site" / "report.json").read_text())
    (entry,) = (e for e in report["snippets"] if e["snippet"] == "differs#1")
    assert (entry["verdict"], entry["diverges"]) == ("diverges as declared", ["value"])
    assert (report["build"]["divergences"], report["build"]["declared_differences"]) == (0, 1)


def test_a_second_build_executes_nothing(good, home, cache):
    site, _ = good
    result = mkdocs(site, cache, "build", "--strict")
    assert result.returncode == 0
    assert "0 executed now" in result.stderr
    again = (site / "site" / "index.html").read_text()
    assert again == home


def test_only_the_edited_snippet_runs_again(good, home, cache):
    site, _ = good
    kept = (site / "docs" / "index.md").read_text()
    (site / "docs" / "index.md").write_text(
        kept + '\n```python exec="on" fresh="yes"\nx = 5\n```\n'
    )
    result = mkdocs(site, cache, "build")
    (site / "docs" / "index.md").write_text(kept)
    assert "1 executed now" in result.stderr
    assert "observing 1/1: index#3" in result.stderr


def test_the_build_s_own_process_never_imports_torch(good, home, cache, tmp_path):
    site, _ = good
    copy = shutil.copytree(site, tmp_path / "copy")
    (copy / "docs" / "more.md").write_text(page(("", "import torch; print(torch.ones(1).sum())")))
    checker = tmp_path / "checker"
    checker.mkdir()
    (checker / "sitecustomize.py").write_text(
        "import atexit, os, sys\n"
        "if 'MEASURED_JOB' not in os.environ:\n"
        "    atexit.register(lambda: print('torch imported:', 'torch' in sys.modules))\n"
    )
    result = mkdocs(copy, cache, "build", env={"PYTHONPATH": str(checker)})
    assert result.returncode == 0, result.stderr
    assert "1 executed now" in result.stderr
    assert result.stdout.strip().endswith("torch imported: False")


def test_without_a_compiler_one_line_says_what_to_install(good, cache, tmp_path):
    site, _ = good
    copy = shutil.copytree(site, tmp_path / "copy")
    (copy / "docs" / "more.md").write_text(page(("", "print('new')")))
    result = mkdocs(copy, cache, "build", env={"PATH": str(tmp_path), "CXX": ""})
    assert result.returncode == 1
    (line,) = [line for line in result.stderr.splitlines() if "C++ compiler" in line]
    assert "apt-get install g++" in line
    assert "xcode-select --install" in line


def test_mistakes_are_told_before_anything_runs(tmp_path, cache):
    site = make_site(
        tmp_path / "site",
        {"index.md": page(('graphz="1"', "x = 1"), ("", "print('unseen')"))},
    )
    result = mkdocs(site, cache, "build")
    assert result.returncode == 1
    assert f'index.md:{line_of(site, "index.md")}: unknown option graphz="1"' in result.stderr
    assert "observing" not in result.stderr


def test_a_snippet_included_twice_is_a_mistake(tmp_path, cache):
    fence = '```python exec="on"\n--8<-- "part/a.py"\n```\n'
    site = make_site(tmp_path / "site", {"index.md": f"{fence}\n{fence}"}, {"a.py": "x = 1\n"})
    result = mkdocs(site, cache, "build")
    assert "index.md:5: part/a is included a second time; it stands at index.md:1" in result.stderr


def test_an_executed_fence_from_an_included_markdown_file_is_told(tmp_path, cache):
    site = make_site(tmp_path / "site", {"index.md": '--8<-- "part/b.md"\n'})
    (site / "snippets" / "part" / "b.md").write_text('```python exec="on"\nprint(1)\n```\n')
    result = mkdocs(site, cache, "build")
    assert result.returncode == 1
    assert "the fence comes from an included Markdown file" in result.stderr


def test_two_builds_at_once_run_each_snippet_once(tmp_path, cache):
    site = make_site(tmp_path / "site", {"index.md": page(("", "import time; time.sleep(2)"))})
    with ThreadPoolExecutor(2) as pool:
        builds = [
            pool.submit(mkdocs, site, cache, "build", "-d", str(tmp_path / name)) for name in "ab"
        ]
        results = [build.result() for build in builds]
    assert [result.returncode for result in results] == [0, 0]
    executed = [re.search(r"(\d) executed now", result.stderr)[1] for result in results]
    assert sorted(executed) == ["0", "1"]


def strange_class() -> str:
    """A class of machines that this one does not belong to."""
    from measured import claims, machine

    here = claims.classes_of(machine.describe())
    return next(name for name in claims.CLASSES if name not in here)


@pytest.fixture(scope="module")
def claiming(tmp_path_factory: pytest.TempPathFactory, cache: Path):
    """A site with claims of every outcome; the broken ones stand on a page of their own."""
    elsewhere = f'{{{{ part/ratio.ratio | times | on("{strange_class()}") | at_least(4) }}}}'
    site = make_site(
        tmp_path_factory.mktemp("claiming"),
        {
            "index.md": (
                '# Home\n\n```python exec="on" graphs="0"\n--8<-- "part/ratio.py"\n```\n\n'
                "It is {{ part/ratio.ratio | times | at_least(1) | at_most(2) }} as fast,\n"
                f"there {elsewhere}.\n\n"
                '| a | b |\n|---|---|\n| {{ part/ratio.word \\| equals("a \\| b") }} | c |\n'
            ),
            "broken.md": (
                "# Broken\n\nFine.\n\n"
                "Only {{ part/ratio.ratio | times | at_least(3) }}, "
                "{{ part/ratio.word | at_least(2) }}.\n"
            ),
        },
        {"ratio.py": 'ratio = 2  # Counts are decided on a busy machine, too.\nword = "a | b"\n'},
    )
    first = mkdocs(site, cache, "build")
    report = json.loads((site / "site" / "report.json").read_text())
    pages = {name: (site / "site" / name / "index.html").read_text() for name in (".", "broken")}
    (site / "docs" / "broken.md").unlink()
    return site, first, report, pages


def marks(page: str) -> list[tuple[str, str, str]]:
    """(outcome, title, text) of each mark on a claim, none of which leaves its value's line."""
    found = re.findall(
        r'</a>\u2060<span class="measured-claim" data-outcome="(\w+)" title="([^"]*)">'
        r"(.*?)(?=</span></span>)",
        unescape(page.replace("&#34;", "'")),
    )
    return [(outcome, title, text_of(text)) for outcome, title, text in found]


def test_a_broken_claim_is_red_and_names_page_line_value_and_bound(claiming):
    _, result, _, _ = claiming
    assert result.returncode == 1
    assert (
        "broken.md:5: {{ part/ratio.ratio | times | at_least(3) }}: the claim is broken: "
        "measured 2.00× (2), claimed at least 3\n"
    ) in result.stderr
    assert "broken.md:5: {{ part/ratio.word | at_least(2) }}: at least 2 can not" in result.stderr
    assert "2 failures" in result.stderr


def test_claims_are_counted_in_the_log_and_listed_in_the_report(claiming):
    _, result, report, _ = claiming
    assert "5 claims: 3 hold, 1 broken, 1 undecided" in result.stderr
    claims = report["claims"]
    assert [claims[outcome] for outcome in ("holds", "broken", "undecided")] == [3, 1, 1]
    (broken,) = [entry for entry in claims["list"] if entry["outcome"] == "broken"]
    assert broken == {
        "page": "broken.md",
        "line": 5,
        "expression": "part/ratio.ratio | times | at_least(3)",
        "outcome": "broken",
        "value": 2,
        "shown": "2.00×",
        "bound": "at least 3",
        "reason": "",
    }
    (undecided,) = [entry for entry in claims["list"] if entry["outcome"] == "undecided"]
    assert (undecided["page"], undecided["line"]) == ("index.md", 8)
    assert undecided["reason"] == f"this machine is not {strange_class()}"


def test_a_claim_shows_its_value_and_beside_it_whether_it_holds(claiming):
    pages = claiming[3]
    assert "It is 2.00×" in text_of(pages["."])
    holds, undecided, word = marks(pages["."])
    assert holds == ("holds", "claim: at least 1; holds; claim: at most 2; holds", "✓")
    told = f"claim: at least 4; undecided (this machine is not {strange_class()})"
    assert undecided == ("undecided", told, f"? undecided ({told})")
    assert word == ("holds", "claim: equals 'a | b'; holds", "✓")
    (broken,) = marks(pages["broken"])
    assert broken[:2] == ("broken", "claim: at least 3; broken")


def test_an_undecided_claim_is_green_unless_claims_are_required(claiming, cache):
    site = claiming[0]
    result = mkdocs(site, cache, "build")
    assert result.returncode == 0, result.stderr
    assert "4 claims: 3 hold, 0 broken, 1 undecided" in result.stderr
    required = mkdocs(site, cache, "build", env={"MEASURED_REQUIRE_CLAIMS": "1"})
    assert required.returncode == 1
    assert f'index.md:8: {{{{ part/ratio.ratio | times | on("{strange_class()}")' in required.stderr
    assert f"the claim is undecided (this machine is not {strange_class()})" in required.stderr
