"""The twin is invisible: a program sees, and leaves behind, the same with the audit and without.

Each program is run twice, once as it is and once audited, and tells what it saw. All that differs
is a leak.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import io
import logging
import os
import random
import types
import warnings
import weakref

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def compiled(function, backend="aot_eager"):
    return torch.compile(function, backend=backend)


def breaking(function):
    """Eager code in the middle, so that Python side effects run in the compiled call as well."""
    return torch.compile(function, backend="eager")


@program
def random_streams():
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    own = torch.Generator().manual_seed(7)
    dice = random.Random(7)
    numpys = np.random.default_rng(7)

    @breaking
    def draw(x):
        torch._dynamo.graph_break()
        noise = torch.rand(2) + torch.rand(2, generator=own)
        return x + noise + random.random() + dice.random() + np.random.rand() + numpys.random()

    drawn = [draw(torch.zeros(2)).tolist() for _ in range(3)]
    return drawn, torch.rand(1).item(), random.random(), np.random.rand(), numpys.random()


@program
def backward_inside():
    weight = torch.ones(3, requires_grad=True)
    torch._dynamo.utils.counters.clear()

    @breaking
    def step(x):
        loss = (weight * x).sum()
        loss.backward()
        return loss.detach()

    losses = [step(torch.full((3,), float(n))).item() for n in range(3)]
    books = torch._dynamo.utils.counters
    return losses, weight.grad.tolist(), sum(books["graph_break"].values())


COUNT = 0


class Counter:
    total = 0
    __slots__ = ("calls", "seen")

    def __init__(self):
        self.calls = 0
        self.seen = []

    def count(self):
        global COUNT
        COUNT += 1
        Counter.total += 1
        self.calls += 1
        self.seen.append(self.calls)


@dataclasses.dataclass
class Options:
    used: int = 0


@program
def counters():
    global COUNT
    COUNT = Counter.total = 0
    counter, options, space = Counter(), Options(), types.SimpleNamespace(n=0)
    array, queue, names, text = np.zeros(2), collections.deque(), set(), io.StringIO()
    nested = {"deep": [0]}
    cell = 0

    def step(x, kept=[]):  # noqa: B006 - a default that keeps state is one of the things put back.
        nonlocal cell
        torch._dynamo.graph_break()
        counter.count()
        options.used += 1
        space.n += 1
        array[0] += 1
        queue.append(1)
        names.add(len(names))
        text.write("x")
        nested["deep"][0] += 1
        cell += 1
        kept.append(1)
        step.calls = getattr(step, "calls", 0) + 1
        return x + 1

    run = breaking(step)
    for _ in range(3):
        run(torch.ones(1))
    return (
        COUNT, Counter.total, counter.calls, counter.seen, options.used, space.n, array.tolist(),
        list(queue), names, text.getvalue(), nested, cell, step.__defaults__, step.calls,
    )  # fmt: skip


@program
def partial_of_a_method():
    counter = Counter()

    def step(counter, x):
        torch._dynamo.graph_break()
        counter.count()
        return x + 1

    run = breaking(functools.partial(step, counter))
    run(torch.ones(1))
    return counter.calls, counter.seen


@program
def module_hooks():
    seen = []
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    module[0].register_forward_pre_hook(lambda *_: seen.append("before"))
    module[0].register_forward_hook(lambda *_: seen.append("after"))
    module[0].register_full_backward_hook(lambda *_: seen.append("backward"))
    run = compiled(module)
    for _ in range(2):
        run(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return seen


@program
def a_hook_that_removes_itself():
    module = torch.nn.Linear(2, 2)
    seen = []

    def once(*_):
        seen.append(1)
        handle.remove()

    handle = module.register_forward_hook(once)
    run = breaking(module)
    run(torch.ones(1, 2))
    run(torch.ones(1, 2))
    return seen, len(module._forward_hooks)


@program
def version_counters():
    def step(x, buffer):
        buffer.add_(1)
        x.mul_(2)
        return x + buffer

    x, buffer = torch.ones(2), torch.zeros(2)
    run = compiled(step)
    run(x, buffer)
    versions = x._version, buffer._version
    return versions, x.tolist(), buffer.tolist()


@program
def gradient_buffers():
    module = torch.nn.Linear(3, 3)
    torch.nn.init.ones_(module.weight)
    run = compiled(module)
    x = torch.ones(2, 3, requires_grad=True)
    grads = []
    for _ in range(3):
        run(x).sum().backward()
        grads.append((x.grad.tolist(), module.weight.grad.tolist(), id(x.grad)))
    same = len({identity for *_, identity in grads}) == 1
    return [g[:2] for g in grads], same


@program
def backward_inside_the_call():
    weight = torch.ones(3, requires_grad=True)

    def step(x):
        loss = (weight * x).sum()
        torch._dynamo.graph_break()
        loss.backward()
        return loss.detach()

    run = breaking(step)
    run(torch.ones(3))
    run(torch.ones(3))
    return weight.grad.tolist()


@program
def optimizer_state():
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 1)
    adam = torch.optim.Adam(module.parameters(), lr=0.1)
    before = len(adam.state)

    @breaking
    def step(x):
        loss = module(x).square().sum()
        torch._dynamo.graph_break()
        loss.backward()
        adam.step()
        adam.zero_grad()
        return loss.detach()

    losses = [step(torch.ones(2, 3)).item() for _ in range(3)]
    steps = [state["step"].item() for state in adam.state.values()]
    return before, losses, steps, module.weight.tolist()


@program
def grad_scaler():
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 1)
    sgd = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    @breaking
    def step(x):
        with torch.autocast("cpu"):
            loss = module(x).square().sum()
        torch._dynamo.graph_break()
        scaler.scale(loss).backward()
        scaler.step(sgd)
        scaler.update()
        sgd.zero_grad()
        return loss.detach().float()

    losses = [step(torch.ones(2, 3)).item() for _ in range(4)]
    return losses, scaler.get_scale(), module.weight.tolist()


@program
def switches():
    def step(x):
        torch._dynamo.graph_break()
        torch.set_grad_enabled(not torch.is_grad_enabled())
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
        torch.set_float32_matmul_precision("medium")
        return x + torch.ones(1)

    def now():
        return (
            torch.is_grad_enabled(), torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(),
            torch.is_autocast_enabled("cpu"), torch.get_num_threads(),
        )  # fmt: skip

    run = breaking(step)
    try:
        states = []
        for _ in range(3):
            dtype = run(torch.ones(1)).dtype
            states.append((dtype, *now()))
        return states
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")


@program
def the_autograd_graph():
    w = torch.ones(3, requires_grad=True)
    hidden = w * 2
    out = compiled(lambda h: h.sin())(hidden)

    def chain(node):
        names = []
        while node is not None:
            names.append(type(node).__name__)
            node = node.next_functions[0][0] if node.next_functions else None
        return names

    out.sum().backward()
    again = ""
    try:
        out.sum().backward()
    except RuntimeError as error:
        again = str(error)[:40]
    return chain(hidden.grad_fn), len(chain(out.grad_fn)), w.grad.tolist(), again


@program
def what_dies_with_its_last_reference():
    class Kept:
        pass

    kept = Kept()
    run = compiled(lambda x: x * 2)
    x = torch.ones(4, requires_grad=True)
    x.kept = kept
    out = run(x)
    result, given, attribute = weakref.ref(out), weakref.ref(x), weakref.ref(kept)
    used = run(x)
    used.sum().backward()
    gc.collect()
    del out, x, kept, used
    gc.collect()
    return result() is None, given() is None, attribute() is None


@program
def memory_without_a_collection():
    """Results without a graph go at once, as reference counting promises."""
    gc.collect()
    gc.disable()
    try:
        run = compiled(lambda x: x * 2)
        refs = []
        for _ in range(4):
            out = run(torch.ones(8))
            refs.append(weakref.ref(out))
            del out
        return [ref() is None for ref in refs]
    finally:
        gc.enable()


@program
def warnings_given_once():
    with warnings.catch_warnings(record=True) as given:
        warnings.resetwarnings()
        warnings.simplefilter("default")

        def step(x):
            torch._dynamo.graph_break()
            warnings.warn("look out", UserWarning, stacklevel=1)
            return x + 1

        run = breaking(step)
        for _ in range(3):
            run(torch.ones(1))
    return [str(w.message) for w in given if "look out" in str(w.message)]


@program
def logged_messages():
    seen = []

    class Keep(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    logger = logging.getLogger("measured-test")
    logger.addHandler(handler := Keep())
    logger.setLevel(logging.INFO)

    def step(x):
        torch._dynamo.graph_break()
        logger.info("at work")
        return x + 1

    try:
        breaking(step)(torch.ones(1))
    finally:
        logger.removeHandler(handler)
    return seen


@program
def saved_tensor_hooks():
    packed = []

    def pack(tensor):
        packed.append(tuple(tensor.shape))
        return tensor

    x = torch.ones(3, requires_grad=True)
    run = compiled(lambda x: x.sin())
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run(x).sum().backward()
    return len(packed), x.grad.tolist()


@program
def checkpoint_around_a_compiled_block():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    run = compiled(module)
    x = torch.ones(2, 3, requires_grad=True)
    checkpoint(run, x, use_reentrant=False).sum().backward()
    return x.grad.tolist()


@program
def tensor_attributes():
    x = torch.ones(2)
    x.uses = 0

    def step(x):
        torch._dynamo.graph_break()
        x.uses += 1
        return x + 1

    run = breaking(step)
    run(x)
    run(x)
    return x.uses


@program
def iterators_are_gone_through_once():
    numbers = iter([1, 2, 3, 4])
    squares = (n * n for n in range(5))

    def step(x):
        torch._dynamo.graph_break()
        return x + next(numbers) + next(squares)

    run = breaking(step)
    return [run(torch.zeros(1)).item() for _ in range(3)], list(numbers), list(squares)


@program
def a_function_transform_around_it():
    run = compiled(lambda x: (x * x).sum())
    return torch.func.grad(run)(torch.ones(3)).tolist()


@program
def a_hidden_state_with_a_history():
    torch.manual_seed(0)
    cell = torch.nn.RNNCell(2, 2)
    run = compiled(lambda x, h: cell(x, h))
    h = torch.zeros(1, 2)
    for _ in range(3):
        h = run(torch.ones(1, 2), h)
    h.sum().backward()
    return h.tolist(), cell.weight_hh.grad.tolist()


@program
def an_argument_that_contains_itself():
    loop = [torch.ones(1)]
    loop.append(loop)
    return torch.compile(lambda c: c[0] + 1, backend="eager")(loop).item()


@program
def leaving_by_system_exit():
    def step(x):
        torch._dynamo.graph_break()
        raise SystemExit(3)

    try:
        breaking(step)(torch.ones(1))
    except SystemExit as error:
        return error.code


DIFFER = {"optimizer_state"}
"""Compiled Adam corrects its bias in float32, and is told apart from eager; the program is not
disturbed by that."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sees_the_same(request, name):
    torch._dynamo.reset()
    alone = repr(PROGRAMS[name]())
    audited = request.getfixturevalue("audited")
    assert repr(PROGRAMS[name]()) == alone
    calls = audited()
    assert calls
    expected = {"agrees", "not comparable", "ran eager"} | (
        {"diverges"} if name in DIFFER else set()
    )
    assert {call.verdict for call in calls} <= expected


def test_nothing_of_the_twin_is_printed(audited, capfd):
    def step(x):
        torch._dynamo.graph_break()
        print("once")
        os.write(1, b"raw\n")
        warnings.warn("careful", stacklevel=1)
        return x + 1

    breaking(step)(torch.ones(1))
    out, _ = capfd.readouterr()
    assert sorted(out.split()) == ["once", "raw"]
    assert audited()


def test_a_c_warning_that_is_given_once_is_left_to_the_program(audited, capfd):
    def step(x):
        torch._dynamo.graph_break()
        torch.eye(2).to_sparse_csr()  # Warns once per process, in C++.
        return x + 1

    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        breaking(step)(torch.ones(1))
    assert sum("Sparse CSR" in str(w.message) for w in given) == 1
    assert audited()
