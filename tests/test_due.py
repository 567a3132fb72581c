"""Which calls are checked: first ones, rare ones, and whatever follows a change."""

from __future__ import annotations

import itertools
import timeit

import pytest
import torch
from torch import nn

from measured import due, marks


class Spoiled:
    """A backend whose results are wrong once it is told so."""

    def __init__(self) -> None:
        self.wrong = False

    def __call__(self, graph, inputs):
        def run(*args):
            results = graph.forward(*args)
            return tuple(r + 1 for r in results) if self.wrong else results

        return run


@pytest.fixture
def backend():
    return Spoiled()


def diverging(calls):
    return [call.number for call in calls if call.verdict == "diverges"]


def checked(calls):
    return [call.number for call in calls]


def small():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def test_the_first_calls_and_powers_of_two(audited, backend):
    f = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.ones(3)
    for _ in range(70):
        f(x)
    assert checked(audited()) == [1, 2, 3, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("number", [2, 3, 4, 64])
def test_a_fault_that_starts_late(audited, backend, number):
    f = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.ones(3)
    for call in range(1, 65):
        backend.wrong = call >= number
        f(x)
    assert diverging(audited())[0] == number


CHANGES = {
    "full backward hook": lambda m, o: m.register_full_backward_hook(lambda *_: None),
    "forward hook": lambda m, o: m[0].register_forward_hook(lambda *_: None),
    "hook on a parameter": lambda m, o: m[2].bias.register_hook(lambda g: g),
    "load_state_dict": lambda m, o: m.load_state_dict(small().state_dict()),
    "load_state_dict of the optimizer": lambda m, o: o.load_state_dict(o.state_dict()),
    "attribute": lambda m, o: setattr(m, "note", 1),
    "attribute below": lambda m, o: setattr(m[1], "note", 1),
    "submodule": lambda m, o: m.__setitem__(1, nn.GELU()),
    "parameter replaced": lambda m, o: setattr(m[0], "bias", nn.Parameter(torch.ones(4))),
    "training flag below": lambda m, o: m[1].eval(),
    "parameter frozen": lambda m, o: m[0].weight.requires_grad_(False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_call_after_a_change_is_checked(audited, backend, change):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend=backend)
    for call in range(1, 12):
        if call == 7:
            CHANGES[change](model, optimizer)
        # Wrong at this one call, of which no number makes it due.
        backend.wrong = call == 7
        optimizer.zero_grad()
        compiled(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    assert diverging(audited()) == [7]


def test_a_model_written_to_between_calls(audited, backend):
    model = small().requires_grad_(False)
    compiled = torch.compile(model, backend=backend)
    for call in range(1, 12):
        if call == 7:
            model[0].weight.mul_(2)
        backend.wrong = call == 7
        compiled(torch.ones(3, 4))
    assert diverging(audited()) == [7]


_scale = 2


def by_a_global(x):
    return x * _scale


def test_the_call_that_recompiles_is_checked(audited, backend, monkeypatch):
    f = torch.compile(by_a_global, backend=backend)
    for call in range(1, 12):
        if call == 7:
            monkeypatch.setitem(globals(), "_scale", 3)
        backend.wrong = call == 7
        f(torch.ones(3))
    assert diverging(audited()) == [7]


def test_a_call_left_for_its_check_runs_once(audited):
    ran = []
    kinds = {0.5: 1}

    def f(x, scale):
        ran.append(scale)
        return x * kinds[scale]

    compiled = torch.compile(f, backend="eager")
    x = torch.ones(3)
    for _ in range(6):
        compiled(x, 0.5)
    kinds[0.5] = 2
    assert compiled(x, 0.5).tolist() == [2.0] * 3
    assert ran == [0.5] * 7


def test_the_call_that_hits_the_limit_is_checked(audited, backend):
    def f(x, n):
        return x * n

    compiled = torch.compile(f, backend=backend, dynamic=False)
    x = torch.ones(3)
    with torch._dynamo.config.patch(recompile_limit=4):
        for n in range(12):
            compiled(x, n)
    # The calls up to the limit, and the one that meets it.
    assert set(checked(audited())) >= {1, 2, 3, 4, 5}


def test_each_of_many_recompilations_is_checked(audited, backend):
    compiled = torch.compile(lambda x, n: x * n, backend=backend, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=20):
        for n in range(12):
            compiled(torch.ones(3), n)
    assert checked(audited()) == list(range(1, 13))


def test_a_change_at_every_call_is_no_news(audited, backend):
    model = small()
    compiled = torch.compile(model, backend=backend)
    for call in range(1, 40):
        model.note = call
        compiled(torch.ones(3, 4))
    assert checked(audited()) == [1, 2, 3, 4, 8, 16, 32]


def test_a_change_now_and_then_is_checked_ever_more_seldom(audited, backend):
    model = small()
    compiled = torch.compile(model, backend=backend)
    for call in range(1, 200):
        model.note = call // 10
        compiled(torch.ones(3, 4))
    numbers = checked(audited())
    assert {10, 20, 30, 40, 80, 160} <= set(numbers)
    assert not {50, 60, 70, 90, 100} & set(numbers)


def test_a_container_that_holds_itself_is_an_argument_like_any_other(audited, backend):
    endless = [torch.ones(3)]
    endless.append(endless)
    compiled = torch.compile(lambda x, _: x * 2, backend=backend)
    assert compiled(torch.ones(3), endless).tolist() == [2.0] * 3


def test_a_timed_call_is_checked_once(audited, backend):
    f = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.ones(3)
    timeit.timeit(lambda: f(x), number=300)
    assert checked(audited()) == [1]


def test_a_call_checked_before_is_not_checked_while_timed(audited, backend):
    from torch.utils.benchmark import Timer

    f = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.ones(3)
    f(x)
    # One thread, as Timer has it by default, where there were more is a recompilation.
    threads = torch.get_num_threads()
    Timer("f(x)", globals={"f": f, "x": x}, num_threads=threads).timeit(300)
    assert checked(audited()) == [1]
    f(x)
    assert len(checked(audited())) == 2


def test_a_timed_call_that_recompiles_is_checked(audited, backend):
    f = torch.compile(lambda x: x * 2, backend=backend, dynamic=False)
    sizes = iter(range(2, 6))
    timeit.timeit(lambda: f(torch.ones(next(sizes))), number=4)
    assert checked(audited()) == [1, 2, 3, 4]


def test_the_checks_of_a_long_loop_are_few(audited, backend):
    f = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.ones(3)
    for _ in range(100_000):
        f(x)
    assert len(checked(audited())) < 40


def test_nothing_is_checked_beyond_the_budget(audited, backend, monkeypatch):
    monkeypatch.setattr(due, "AUDIT_SECONDS", 0.0)
    f = torch.compile(lambda x: x * 2, backend=backend)
    for _ in range(20):
        f(torch.ones(3))
    f(torch.ones(4))  # The first of its kind.
    assert checked(audited()) == [1, 21]


def test_marks_tell_what_has_changed():
    model = small()
    before = marks.marks(model.forward)
    assert marks.changed(before, marks.marks(model.forward)) == set()
    model[1].note = 3
    assert marks.changed(before, marks.marks(model.forward)) == {("self.1", "note")}


def test_marks_keep_nothing_alive():
    import weakref

    holder = {"model": small()}

    def f(x):
        return holder["model"](x)

    kept = marks.marks(f)
    gone = weakref.ref(holder["model"])
    del holder["model"]
    assert gone() is None
    assert kept


def test_late_checks_of_a_loop_take_at_most_half_its_time(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(due.time, "perf_counter", lambda: next(ticks) * 1e-5)
    is_due = due.Due(lambda x: x)
    is_due.took(0.1)
    numbers = [number for number in range(1, 40_000) if is_due((torch.ones(3),), {})]
    assert numbers[:8] == [1, 2, 3, 4, 8, 16, 32, 64]
    # By then, what has gone by is more than twice what the checks took.
    assert numbers[8:] == [16384, 32768]
