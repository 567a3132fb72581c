"""Records, their store, the books and the masking: pure parts, no child process."""

from __future__ import annotations

import ast
import threading
import types
from pathlib import Path

import pytest

import measured
from measured import books, child, events, machine, masking, record, run, store
from measured.record import SCHEMA, Conditions, Process, RunRecord
from measured.snippets import Expectations, Place, Snippet, content_key


def a_record(key: str = "k" * 64) -> RunRecord:
    process = Process("finished", "", 1.0, 0.5, 1 << 20, "hi\n")
    return RunRecord(
        SCHEMA, key, "a/b", "print()", {}, "2026-01-01T00:00:00+00:00", machine.describe(),
        process, 1, Conditions(0.0, 0.0, 0.0, 0, None), books.books([], "/tmp/m"), None, {"x": [1, {"y": 2.5}]}, [], [], None,
    )  # fmt: skip


def test_a_record_survives_the_disk(tmp_path):
    kept = store.Store(tmp_path)
    kept.save(a_record())
    assert kept.load("k" * 64) == a_record()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": 1}'])
def test_a_damaged_record_is_a_miss(tmp_path, damage):
    kept = store.Store(tmp_path)
    kept.save(a_record())
    (path,) = tmp_path.glob("*/*.json")
    path.write_bytes(damage)
    assert kept.load("k" * 64) is None


def test_a_record_cut_short_anywhere_is_a_miss(tmp_path):
    kept = store.Store(tmp_path)
    kept.save(a_record())
    (path,) = tmp_path.glob("*/*.json")
    whole = path.read_bytes()
    for length in range(0, len(whole.rstrip()), 37):
        path.write_bytes(whole[:length])
        assert kept.load("k" * 64) is None


def test_a_record_of_another_schema_or_key_is_a_miss(tmp_path):
    kept = store.Store(tmp_path)
    kept.save(a_record())
    (path,) = tmp_path.glob("*/*.json")
    current, old = (b'"schema": %d' % number for number in (SCHEMA, SCHEMA - 1))
    path.write_bytes(path.read_bytes().replace(current, old))
    assert kept.load("k" * 64) is None
    kept.save(a_record())
    path.rename(path.with_name("kk" + "j" * 62 + ".json"))
    assert kept.load("kk" + "j" * 62) is None


def test_two_builds_writing_the_same_record_leave_a_whole_one(tmp_path):
    kept = store.Store(tmp_path)
    threads = [threading.Thread(target=kept.save, args=(a_record(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept.load("k" * 64) == a_record()
    assert len(list(tmp_path.rglob("*"))) == 2  # The folder and one file: no temporary is left.


def key(name="a/b", source="print()", machine="m", engine="e", env=None, **expects):
    snippet = Snippet(name, source, Place("p.md", 1), Expectations(**expects), {})
    return content_key(snippet, machine=machine, engine=engine, environment=env or {})


@pytest.mark.parametrize(
    "change",
    [
        {"source": "print(1)"},
        {"name": "a/c"},
        {"machine": "n"},
        {"engine": "f"},
        {"env": {"TORCH_LOGS": "graph"}},
        {"timeout": 5.0},
        {"fresh": True},
    ],
)
def test_whatever_could_change_a_run_changes_its_key(change):
    assert key(**change) != key()


@pytest.mark.parametrize("same", [{"graphs": 1}, {"raises": "E"}, {"env": {"EDITOR": "vi"}}])
def test_what_is_only_judged_does_not_change_the_key(same):
    assert key(**same) == key()


def imports(source: str) -> set[str]:
    """Names under which a module of the project imports others of it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="measured"):
                found |= {name.name for name in node.names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.removeprefix("measured."))
    return found


def test_a_change_to_any_module_that_makes_a_record_is_another_engine():
    folder = Path(measured.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    reached, ahead = set(), {"child", "program", "run"}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= (imports((folder / f"{name}.py").read_text()) & modules) - reached
    # What they say of a snippet or a machine is in the key itself.
    in_the_key = {"machine", "snippets"}
    assert reached - in_the_key == set(store._ENGINE) - {"boot/sitecustomize"}


def test_torch_s_version_is_known_without_importing_it():
    import torch

    assert machine.torch_version() == torch.__version__


@pytest.mark.parametrize(
    ("compile_id", "index"),
    [("0/0", 0), ("3/2", 2), ("0/1_1", 1), ("!0/1/4", 4), ("", 0), ("?", 0)],
)
def test_recompile_index(compile_id, index):
    assert record.recompile_index(compile_id) == index


def compiled(**changes) -> events.Compiled:
    fields = {
        "pid": 7, "compile_id": "0/0", "function": "f", "file": "a.py", "line": 1, "graph_ops": 2,
        "backward": False, "recompile_reason": None, "failure": None, "failure_reason": "",
        "failure_file": "", "failure_line": 0, "entire_us": 10, "backend_us": 8, "inductor_us": 5,
        "cpp_us": 3, "toolchain_us": 1, "cache_hits": 0, "cache_misses": 1,
    }  # fmt: skip
    return events.Compiled(**{**fields, **changes})


def test_phases_add_up_to_the_whole():
    made = books.books([compiled()], "/tmp/m")
    parts = [made.phase_seconds(phase) for phase in record.PHASES]
    assert parts == pytest.approx([2e-6, 3e-6, 1e-6, 3e-6, 1e-6])
    assert sum(parts) == pytest.approx(made.compile_seconds)


def test_a_backward_compiled_later_is_no_graph_of_its_own():
    made = books.books([compiled(), compiled(backward=True)], "/tmp/m")
    assert (made.graphs, made.recompiles, len(made.compiles)) == (1, 0, 2)


def test_a_break_seen_by_reason_and_resume_function_is_one():
    made = books.books(
        [
            events.Broke("a.py", 3, "print"),
            compiled(),
            compiled(function="torch_dynamo_resume_in_f_at_3", compile_id="1/0"),
            events.Broke("a.py", 3, "print"),
        ],
        "/tmp/m",
    )
    assert [(b.line, b.reason) for b in made.breaks] == [(3, "print")]
    assert made.graphs == 2


def test_a_frame_given_up_is_a_break_and_a_reached_limit_is_none():
    given_up = compiled(
        failure="Unsupported", failure_reason="print", failure_file="a.py", failure_line=4
    )
    limit = compiled(failure="Unsupported", failure_reason="Dynamo recompile limit exceeded")
    made = books.books([given_up, limit], "/tmp/m")
    assert [(b.line, b.reason) for b in made.breaks] == [(4, "print")]
    assert made.graphs == 0


def test_masking_hides_numbers_and_their_units_only():
    assert masking.masked("took 3.2 s, conv2d: 1,024 x 1e-5") == masking.masked(
        "took  417 ms, conv2d: 2 x 3"
    )
    assert masking.masked("IQR 5 % of 1.2 seconds") == masking.masked("IQR 12% of 980 min")
    assert masking.masked("[1, 2] float32") == "[#, #] float32"
    assert masking.masked("f32 agrees") != masking.masked("f64 agrees")
    assert masking.masked("yes") != masking.masked("no")


def test_cleaning_hides_the_run_s_own_folder_and_addresses_only():
    raw = b'File "/tmp/m-1/run/a.py", line 3\n<f at 0x7f00deadbeef>\n\xff\x00 0x10\n'
    assert masking.clean(raw, "/tmp/m-1/run") == (
        'File "a.py", line 3\n<f at 0x…>\n\ufffd\ufffd 0x10\n'
    )


def test_cleaning_hides_the_random_part_of_a_compiled_function_s_name():
    name = b"__compiled_fn_1_02dfe652_801a_46ea_95dd_6e5872949025"
    assert masking.clean(name + b"\n__compiled_fn_1_2\n", "/f") == (
        "__compiled_fn_1\n__compiled_fn_1_2\n"
    )


def test_a_reason_to_compile_again_names_the_snippet_s_file_alone():
    reason = 'n == 0  # return x  # measured-1/run/a.py:2 in f\n  File "/tmp/measured-1/run/a.py"'
    assert masking.lasting(f"{reason} (id=0x7f4ff0963350)", "/tmp/measured-1/run") == (
        'n == 0  # return x  # a.py:2 in f\n  File "a.py" (id=0x…)'
    )


def test_an_event_log_cut_short_keeps_its_whole_lines(tmp_path):
    log = events.Log(tmp_path / "log")
    log.write(events.Finished({"a": 1}))
    log.write(events.Broke("a.py", 3, "print"))
    path = tmp_path / "log"
    path.write_bytes(path.read_bytes()[:-5])
    assert events.read(path) == [events.Finished({"a": 1})]


def test_frames_of_the_audit_in_a_traceback_are_left_out():
    alone = 'Traceback\n  File "a.py", line 3, in <module>\n    f(x)\nValueError: no\n'
    audited = alone.replace(
        "ValueError",
        '  File "/x/hooks/measured/shadow.py", line 70, in shadowed\n    return audit.call(args)\n'
        "           ^^^^^^^^^^^^^^^^\nValueError",
    )
    assert masking.masked(audited) == masking.masked(alone)


@pytest.mark.parametrize(
    ("audited", "told"),
    [
        ([compiled()], ""),
        ([compiled(), compiled(compile_id="1/0")], "1 graphs when observed and 2 when audited"),
        (
            [compiled(), events.Broke("a.py", 2, "why")],
            "0 breaks when observed and 1 when audited",
        ),
        ([compiled(compile_id="0/1")], "0 recompilations when observed and 1 when audited"),
    ],
)
def test_what_the_compiler_did_must_be_the_same_under_audit(audited, told):
    assert run.recount([compiled()], audited) == told


def test_another_seed_is_added_to_every_seed_of_a_program():
    seeds = []
    torch = types.SimpleNamespace(manual_seed=seeds.append)
    child._reseed(torch, 3)
    torch.manual_seed(7)
    assert seeds == [3, 10]


def test_the_seed_is_part_of_the_key():
    snippet = Snippet("a", "x", Place("p.md", 1), Expectations(), {})
    keys = {
        content_key(snippet, machine="m", engine="e", environment=environment)
        for environment in ({}, {"MEASURED_SEED": "1"}, {"OTHER": "1"})
    }
    assert len(keys) == 2
