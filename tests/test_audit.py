"""The audit: planted faults of each kind are found, look-alikes pass, the program notices nothing.

Faults are planted by custom backends, so that no test waits for a C++ compiler.
"""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
from torch.utils.checkpoint import checkpoint


def faulty(change, *, backward=False):
    """A backend that runs the graph and then lets `change` spoil its list of outputs."""

    def backend(gm, _inputs):
        def run(*args):
            outputs = list(gm(*args))
            change(outputs)
            return outputs

        return run

    if not backward:
        return backend

    def in_backward(gm, inputs):
        class Spoil(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                return value.clone()

            @staticmethod
            def backward(ctx, grad):
                wrong = [grad.clone()]
                change(wrong)
                return wrong[0]

        def run(*args):
            return [Spoil.apply(out) for out in gm(*args)]

        return run

    return in_backward


def kinds(calls):
    return {d.kind for call in calls for d in call.differences}


def paths(calls):
    return {d.path for call in calls for d in call.differences}


class Own(torch.nn.Module):
    """A class with its own forward: torch 2.13 compiles no stock class in place."""

    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x).sin()


def one_element(outputs):
    outputs[0].data.view(-1)[7] += 1e-2


def test_a_single_wrong_element_is_found_with_its_index_and_sizes(audited):
    compiled = torch.compile(lambda x: x.sin(), backend=faulty(one_element))
    compiled(torch.ones(4, 5))
    (call,) = audited()
    (difference,) = call.differences
    assert (call.verdict, difference.kind, difference.path) == ("diverges", "value", "result")
    assert difference.index == "(1, 2)"
    assert difference.max_absolute == pytest.approx(1e-2, rel=1e-3)
    assert float(difference.compiled) - float(difference.eager) == pytest.approx(1e-2, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("value", one_element),
        ("nan", lambda outs: outs[0].data.view(-1)[0].fill_(float("nan"))),
        ("inf", lambda outs: outs[0].data.view(-1)[0].fill_(float("inf"))),
        ("dtype", lambda outs: outs.__setitem__(0, outs[0].double())),
        ("shape", lambda outs: outs.__setitem__(0, outs[0].reshape(-1))),
        ("stride", lambda outs: outs.__setitem__(0, outs[0].t().contiguous().t())),
        ("requires_grad", lambda outs: outs.__setitem__(0, outs[0].detach())),
    ],
)
def test_each_kind_of_wrong_result_is_found(audited, kind, change):
    torch.compile(lambda x: x * 2, backend=faulty(change))(torch.ones(4, 5, requires_grad=True))
    assert kind in kinds(audited())


def test_integers_must_be_equal(audited):
    def off_by_one(outputs):
        outputs[0][3] += 1

    torch.compile(lambda x: x + 1, backend=faulty(off_by_one))(torch.arange(8))
    assert kinds(audited()) == {"value"}


def test_a_lost_input_mutation_is_found(audited):
    def forgetful(gm, _inputs):
        return lambda *args: gm(*(arg.clone() for arg in args))

    def double_in_place(x):
        x.mul_(2)
        return x + 1

    x = torch.ones(4)
    torch.compile(double_in_place, backend=forgetful)(x)
    assert "args[0]" in paths(audited())
    assert x.tolist() == [1.0] * 4  # What the program sees is what compiled code did.


def test_a_buffer_that_was_not_updated_is_found(audited):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen.add_(1)
            return x * 2

    def forgetful(gm, _inputs):
        return lambda *args: gm(*(arg.clone() for arg in args))

    torch.compile(Counting(), backend=forgetful)(torch.ones(3))
    assert "self.seen" in paths(audited())


def test_a_wrong_gradient_is_found_for_input_and_parameter(audited):
    linear = torch.nn.Linear(5, 5)
    x = torch.ones(4, 5, requires_grad=True)
    compiled = torch.compile(linear, backend=faulty(one_element, backward=True))
    compiled(x).sum().backward()
    assert {"gradient of args[0]", "gradient of self.weight", "gradient of self.bias"} <= paths(
        audited()
    )
    assert kinds(audited()) == {"value"}


def test_a_right_gradient_passes(audited):
    linear = torch.nn.Linear(5, 5)
    x = torch.ones(4, 5, requires_grad=True)
    torch.compile(linear, backend="aot_eager")(x * 2).sum().backward()
    (call,) = audited()
    assert call.verdict == "agrees"


def test_gradients_of_two_calls_before_one_backward_are_told_apart(audited):
    linear = torch.nn.Linear(5, 5)
    compiled = torch.compile(linear, backend="aot_eager")
    (compiled(torch.ones(4, 5)) + compiled(torch.full((4, 5), 2.0))).sum().backward()
    assert [call.verdict for call in audited()] == ["agrees", "agrees"]


def test_an_exception_that_only_compiled_code_raises_is_a_divergence(audited):
    def broken(gm, _inputs):
        def run(*args):
            raise ValueError("no")

        return run

    with pytest.raises(ValueError, match="no"):
        torch.compile(lambda x: x + 1, backend=broken)(torch.ones(2))
    assert kinds(audited()) == {"exception-only-in-compiled"}


def test_an_exception_that_only_eager_raises_is_a_divergence(audited):
    def swallow(gm, _inputs):
        return lambda *args: [torch.zeros(2)]

    def index(x, i):
        return x[i]

    torch.compile(index, backend=swallow)(torch.ones(3), torch.tensor([0, 99]))
    assert kinds(audited()) == {"exception-only-in-eager"}


def test_exceptions_that_both_raise_agree(audited):
    def check(x):
        if x.shape[0] == 2:
            raise KeyError("two")
        return x + 1

    with pytest.raises(KeyError):
        torch.compile(check, backend="eager")(torch.ones(2))
    assert [call.verdict for call in audited()] in (["agrees"], ["ran eager"])


def test_a_compile_that_fails_is_a_refusal_and_no_divergence(audited):
    def refuse(gm, _inputs):
        raise RuntimeError("not today")

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(lambda x: x + 1, backend=refuse)(torch.ones(2))
    (call,) = audited()
    assert call.verdict == "refused"
    assert call.detail.endswith("raised: RuntimeError: not today")


def test_a_callable_that_enters_no_compiled_code_is_told(audited):
    torch.compile(lambda x: None, backend="eager")(torch.ones(2))
    assert [call.verdict for call in audited()] == ["ran eager"]


@pytest.mark.parametrize(
    "way", ["function", "decorator", "module", "method", "in place", "optimize"]
)
def test_every_way_to_compile_is_shadowed(audited, way):
    backend = faulty(one_element)
    model = torch.nn.Sequential(torch.nn.Linear(5, 5))
    x = torch.ones(4, 5)
    match way:
        case "function":
            torch.compile(lambda x: x.sin(), backend=backend)(x)
        case "decorator":

            @torch.compile(backend=backend)
            def decorated(x):
                return x.sin()

            decorated(x)
        case "module":
            torch.compile(model, backend=backend)(x)
        case "method":
            torch.compile(model.forward, backend=backend)(x)
        case "in place":
            own = Own(5)
            own.compile(backend=backend)
            own(x)
        case "optimize":
            torch._dynamo.optimize(backend)(lambda x: x.sin())(x)
    assert "value" in kinds(audited())


def test_an_inner_compiled_module_in_an_eager_outer_one_is_shadowed(audited):
    inner = torch.compile(torch.nn.Linear(5, 5), backend=faulty(one_element))
    outer = torch.nn.Sequential(torch.nn.Linear(5, 5), inner)
    outer(torch.ones(4, 5))
    assert kinds(audited()) == {"value"}


def test_a_compiled_function_that_another_compile_traces_through_leaves_one_graph(audited):
    counter = torch._dynamo.testing.CompileCounter()
    inner = torch.compile(lambda x: x.sin(), backend=counter)
    outer = torch.compile(lambda x: inner(x) + 1, backend=counter)
    outer(torch.ones(3))
    assert counter.frame_count == 1
    assert len(audited()) == 1


def train(compile_model):
    """Losses and final parameters of a few steps with everything that keeps state."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
    )
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    step = torch.compile(model, backend="eager") if compile_model else model
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    losses = []
    for i in range(6):
        optimizer = adam if i % 2 else sgd
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(step(x + torch.rand(1)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().clone() for p in model.state_dict().values()], torch.rand(1).item()


def test_training_is_the_same_to_the_last_bit_under_the_audit(audited):
    plain = train(compile_model=False)
    shadowed = train(compile_model=True)
    assert plain[0] == shadowed[0]
    assert all(map(torch.equal, plain[1], shadowed[1]))
    assert plain[2] == shadowed[2]
    assert {call.verdict for call in audited()} == {"agrees"}


def test_a_compiled_optimizer_step_happens_once(audited):
    weight = torch.nn.Parameter(torch.ones(3))
    adam = torch.optim.Adam([weight], lr=0.1)
    step = torch.compile(adam.step, backend="eager")
    for _ in range(3):
        weight.grad = torch.ones(3)
        step()
    assert adam.state[weight]["step"].item() == 3
    expected = torch.nn.Parameter(torch.ones(3))
    other = torch.optim.Adam([expected], lr=0.1)
    for _ in range(3):
        expected.grad = torch.ones(3)
        other.step()
    assert torch.allclose(weight, expected, rtol=1e-4)  # A step too many would show as 25 %.


def test_nothing_that_eager_prints_is_seen(audited, capfd):
    def talk(x):
        print("once")
        return x + 1

    torch.compile(talk, backend="eager")(torch.ones(2))
    assert capfd.readouterr().out == "once\n"


def test_python_side_effects_happen_once(audited):
    seen, calls = [], 0

    def note(x):
        nonlocal calls
        calls += 1
        seen.append(x.shape[0])
        return x + 1

    compiled = torch.compile(note, backend="eager")
    for size in (2, 2, 3):
        compiled(torch.ones(size))
    assert seen == [2, 2, 3]
    assert calls == 3


def test_the_random_streams_go_on_as_without_the_audit(audited):
    import random

    torch.manual_seed(0)
    random.seed(0)
    expected = torch.rand(3).tolist(), random.random()
    torch.manual_seed(0)
    random.seed(0)
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert (torch.rand(3).tolist(), random.random()) == expected


def test_version_counters_are_what_compiled_code_made_them(audited):
    def twice(x):
        x.add_(1)
        x.add_(1)
        return x.sum()

    def versions(function):
        x = torch.zeros(3)
        function(x)
        return x._version

    assert versions(torch.compile(twice, backend="eager")) == versions(twice)


def test_what_torch_compile_returns_looks_as_without_the_audit(audited):
    model = torch.nn.Linear(3, 3)
    compiled = torch.compile(model, backend="eager")
    assert isinstance(compiled, torch.nn.Module)
    assert torch.equal(torch.nn.Sequential(compiled)(torch.ones(3)), model(torch.ones(3)))
    assert copy.deepcopy(compiled)(torch.ones(3)).shape == (3,)
    pickle.dumps(compiled)

    def named(x, *, scale=2):
        return x * scale

    function = torch.compile(named, backend="eager")
    assert function.__name__ == "named"
    assert function.__wrapped__ is named
    assert inspect.signature(function) == inspect.signature(named)


def test_modes_that_the_call_sees_are_the_callers(audited):
    def modes(x):
        return x * (2 if torch.is_grad_enabled() else 3)

    compiled = torch.compile(modes, backend="eager")
    with torch.no_grad():
        assert compiled(torch.ones(1)).item() == 3
    assert compiled(torch.ones(1)).item() == 2
    assert {call.verdict for call in audited()} == {"agrees"}


def test_the_first_calls_of_a_kind_and_then_powers_of_two_are_checked(audited):
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    for _ in range(20):
        compiled(torch.ones(2))
    assert [call.number for call in audited()] == [1, 2, 3, 4, 8, 16]
    compiled(torch.ones(2, dtype=torch.float64))
    assert audited()[-1].number == 21


def test_results_are_the_compiled_ones(audited):
    compiled = torch.compile(lambda x: x.sin(), backend=faulty(one_element))
    wrong = compiled(torch.ones(4, 5))
    assert not torch.equal(wrong, torch.ones(4, 5).sin())


def test_nested_and_keyword_results_have_paths(audited):
    def spoil_second(outputs):
        outputs[1].data[0] += 1

    compiled = torch.compile(
        lambda x, *, y: {"sum": x + y, "parts": [x - y, (y,)]}, backend=faulty(spoil_second)
    )
    compiled(torch.ones(2), y=torch.zeros(2))
    assert paths(audited()) == {"result['parts'][0]"}


def test_a_hook_that_compiled_code_ignores_is_found_in_the_gradient(audited):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    compiled = torch.compile(model, backend="aot_eager")
    x = torch.ones(2, 3, requires_grad=True)
    compiled(x).sum().backward()
    model[0].register_full_backward_hook(lambda module, into, out: (into[0] * 2,))
    compiled(x).sum().backward()
    assert [call.verdict for call in audited()] == ["agrees", "diverges"]
    assert paths(audited()) == {"gradient of args[0]"}


def test_a_sum_in_another_order_is_no_divergence(audited):
    def sorted_sum(gm, _inputs):
        return lambda x: [x.sort().values.sum()]

    torch.manual_seed(0)
    x = torch.randn(100_000)
    torch.compile(lambda x: x.sum(), backend=sorted_sum)(x - x.mean())
    (call,) = audited()
    assert call.verdict == "agrees"
    assert call.rule in ("ulp", "float64", "noise")


def test_batch_norm_in_training_is_checked_through_its_backward(audited):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    compiled = torch.compile(model, backend="aot_eager")
    torch.manual_seed(0)
    for _ in range(2):
        compiled(torch.randn(16, 4)).square().sum().backward()
    assert [call.verdict for call in audited()] == ["agrees", "agrees"]
    assert all(call.callable == "Sequential" for call in audited())


def test_the_audit_does_not_take_its_own_state_for_the_programs(audited):
    model = Own(3)
    model.compile(backend="eager")
    for _ in range(2):
        model(torch.ones(2, 3))
    assert [(call.callable, call.verdict) for call in audited()] == [("Own", "agrees")] * 2


def test_a_cell_that_is_applied_again_and_again(audited):
    cell = torch.nn.Linear(4, 4)
    compiled, h = torch.compile(cell, backend="aot_eager"), torch.ones(2, 4)
    for _ in range(3):
        h = compiled(h).tanh()
    h.sum().backward()
    assert [call.verdict for call in audited()] == ["agrees"] * 3


def test_a_write_to_an_activation_keeps_the_programs_gradient(audited):
    def double(h):
        h.mul_(2)
        return h + 1

    x = torch.ones(3, requires_grad=True)
    torch.compile(double, backend="aot_eager")(x * 1).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert [call.verdict for call in audited()] == ["agrees"]


def test_a_lost_write_to_an_activation_is_found(audited):
    def forgetful(gm, _inputs):
        return lambda *args: gm(*(arg.clone() for arg in args))

    def double(h):
        h.mul_(2)
        return h + 1

    x = torch.ones(3, requires_grad=True)
    torch.compile(double, backend=forgetful)(x * 1)
    assert paths(audited()) == {"args[0]"}


def test_an_activation_in_place_inside_a_module(audited):
    block = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 3))
    compiled = torch.compile(block, backend="aot_eager")
    x = torch.randn(2, 3, requires_grad=True)
    compiled(x * 2).sum().backward()
    assert [call.verdict for call in audited()] == ["agrees"]


def test_inference_mode(audited):
    compiled = torch.compile(torch.nn.Linear(3, 3), backend="aot_eager")
    with torch.inference_mode():
        compiled(torch.ones(2, 3))
    assert [call.verdict for call in audited()] == ["agrees"]


def test_a_backward_pass_that_asks_for_some_gradients_only(audited):
    linear = torch.nn.Linear(3, 3)
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.compile(linear, backend="aot_eager")(x)
    torch.autograd.grad(y.sum(), x)
    assert [call.verdict for call in audited()] == ["agrees"]


def test_the_state_of_every_parameter_of_an_optimizer_is_compared(audited):
    first, second = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    sgd = torch.optim.SGD([first, second], lr=0.1, momentum=0.9)

    def corrupt(gm, _inputs):
        def run(*args):
            out = gm(*args)
            sgd.state[first]["momentum_buffer"].add_(100)
            return out

        return run

    for parameter in (first, second):
        parameter.grad = torch.ones(3)
    sgd.step()
    torch.compile(sgd.step, backend=corrupt)()
    assert any("momentum_buffer" in path for path in paths(audited()))


def test_things_that_are_reached_by_the_same_words_have_names_of_their_own(audited):
    class Adder:
        def __init__(self):
            self.t = torch.zeros(2)

        def add(self, x):
            self.t.add_(x)
            return x + 1

    a, b = Adder(), Adder()
    add_a, add_b = a.add, b.add

    def both(x):
        return add_a(x) + add_b(x)

    def forgetful(gm, _inputs):
        return lambda *args: gm(*(arg.clone() for arg in args))

    torch.compile(both, backend=forgetful)(torch.ones(2))
    assert len(paths(audited())) == 2


def test_a_failure_of_the_audit_is_told_and_the_program_goes_on(audited, monkeypatch):
    from measured import compare

    monkeypatch.setattr(compare, "places", lambda *_: 1 / 0)
    assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2
    (call,) = audited()
    assert (call.verdict, call.detail) == ("audit failed", "ZeroDivisionError: division by zero")


def test_autocast_is_the_callers(audited):
    linear = torch.nn.Linear(4, 4)
    compiled = torch.compile(linear, backend="eager")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = compiled(torch.randn(2, 4))
    out.float().sum().backward()
    assert [call.verdict for call in audited()] == ["agrees"]


def test_a_call_is_checked_while_another_thread_compiles(audited, monkeypatch):
    compiled = torch.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))
    # What Dynamo sets while it compiles, for the whole process.
    monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)
    compiled(torch.ones(2))
    assert [call.verdict for call in audited()] == ["agrees", "agrees"]


def test_threads_that_call_at_once_keep_their_output(audited, capfd):
    import threading

    compiled = torch.compile(lambda x: x + 1, backend="eager")
    threads = [threading.Thread(target=lambda n=n: compiled(torch.ones(n + 2))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("still here")
    assert capfd.readouterr().out == "still here\n"


def doing(change):
    """A backend that runs the graph right, and then does something else as well."""

    def backend(gm, _inputs):
        def run(*args):
            outputs = gm(*args)
            change(*args)
            return outputs

        return run

    return backend


def names(calls):
    return {d.name for call in calls for d in call.differences}


def test_a_result_that_is_a_copy_where_eager_gives_a_view(audited):
    def copies(gm, _inputs):
        return lambda *args: [out.clone() for out in gm(*args)]

    torch.compile(lambda x: x[1:], backend=copies)(torch.ones(4))
    (difference,) = (d for call in audited() for d in call.differences)
    assert (difference.kind, difference.path) == ("aliasing", "result")
    assert "shares memory with args[0] in eager only" in difference.message


def test_a_result_that_is_the_input_where_eager_gives_a_copy(audited):
    torch.compile(lambda x: x * 1, backend=lambda gm, _: lambda x: [x])(torch.ones(4))
    assert names(audited()) == {"aliasing"}


def test_two_results_that_share_memory_only_in_compiled_code(audited):
    def merged(gm, _inputs):
        return lambda *args: [gm(*args)[0]] * 2

    torch.compile(lambda x: (x + 1, x + 1), backend=merged)(torch.ones(4))
    assert names(audited()) == {"aliasing"}


def test_disjoint_parts_of_one_buffer_share_nothing(audited):
    def pooled(gm, _inputs):
        def run(*args):
            left, right = gm(*args)
            pool = torch.cat([left, right])
            return [pool[: len(left)], pool[len(left) :]]

        return run

    torch.compile(lambda x: (x + 1, x + 2), backend=pooled)(torch.ones(4))
    assert names(audited()) == set()


class Keeping(torch.nn.Module):
    """Creates tensors and keeps them: in an attribute, in a list, in a class attribute."""

    latest = None

    def __init__(self):
        super().__init__()
        self.seen = []
        self.last = None

    def forward(self, x):
        y = x * 2
        self.last = y
        self.seen.append(y + 1)
        Keeping.latest = y + 2
        return x + 1


@pytest.mark.parametrize("index", range(4))
def test_a_tensor_that_the_call_makes_and_keeps_is_compared(audited, index):
    def spoil(outputs):
        for place, out in enumerate(outputs):
            if place == index:
                outputs[place] = out + 1e-3

    torch.compile(Keeping(), backend=faulty(spoil))(torch.ones(3))
    found = paths(audited())
    assert found
    assert found <= {"result", "self.last", "self.seen[0]", "Keeping.latest"}


def test_numpy_results_are_compared(audited):
    compiled = torch.compile(lambda x: (x * 2).numpy(), backend=faulty(one_element))
    compiled(torch.ones(10))
    assert names(audited()) == {"value"}


class Answer:
    def __init__(self, value, label):
        self.value, self.label = value, label


def test_an_object_of_the_program_is_looked_into(audited):
    def answer(x):
        return Answer(x.sin(), "sine")

    torch.compile(answer, backend=faulty(one_element))(torch.ones(10))
    assert paths(audited()) == {"result.value"}


def test_a_random_stream_that_goes_on_differently(audited):
    torch.compile(lambda x: x + 1, backend=doing(lambda *_: torch.rand(1)))(torch.ones(3))
    assert names(audited()) == {"rng"}
    assert paths(audited()) == {"random state of torch"}


def test_a_switch_that_compiled_code_leaves_changed(audited):
    dtype = torch.get_default_dtype()
    try:
        torch.compile(
            lambda x: x + 1, backend=doing(lambda *_: torch.set_default_dtype(torch.float64))
        )(torch.ones(3))
    finally:
        torch.set_default_dtype(dtype)
    assert names(audited()) == {"state/mode"}


def test_what_is_written_before_both_raise_is_compared(audited):
    class Fails(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.count = torch.zeros(1)

        def forward(self, x, i):
            self.count += 1
            return x[i]

    def forgetful(gm, _inputs):
        def run(*args):
            raise IndexError("no")

        return run

    module = Fails()
    with pytest.raises(IndexError):
        torch.compile(module, backend=forgetful)(torch.ones(3), torch.tensor([7]))
    assert paths(audited()) == {"self.count"}


def test_a_backward_hook_that_did_not_fire(audited):
    seen = []
    linear = torch.nn.Linear(3, 3)
    compiled = torch.compile(linear, backend="aot_eager")
    compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
    linear.register_full_backward_hook(lambda *_: seen.append(1))
    compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
    first, second = audited()
    assert first.verdict == "agrees"
    if not seen:  # As in torch 2.15.
        assert second.verdict == "diverges"
        assert any("in the backward pass" in d.path for d in second.differences)


def test_a_gradient_through_an_argument_that_was_written_to(audited):
    w = torch.ones(3, requires_grad=True)

    def scale(h):
        h.mul_(w)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def backend(gm, _inputs):
        def run(*args):
            (other,) = (arg for arg in args if arg is not w)
            other.mul_(Wrong.apply(w))
            return []

        return run

    h = torch.ones(3) * 2
    torch.compile(scale, backend=backend)(h)
    h.sum().backward()
    assert paths(audited()) == {"gradient of w"}


def test_a_result_on_the_way_to_another_result(audited):
    x = torch.linspace(0, 1, 3, requires_grad=True)
    compiled = torch.compile(lambda x: (h := x * 2, h.exp()), backend="eager")
    h, e = compiled(x)
    (h.sum() + e.sum()).backward()
    (call,) = audited()
    assert call.verdict == "agrees"


def test_two_calls_that_share_a_cast_of_autocast(audited):
    linear = torch.nn.Linear(3, 3)
    compiled = torch.compile(linear, backend="eager")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (compiled(torch.ones(2, 3)) + compiled(torch.full((2, 3), 2.0))).sum().backward()
    assert {call.verdict for call in audited()} == {"agrees"}


def test_a_wrong_autocast_dtype_is_found(audited):
    def forgets(gm, _inputs):
        return lambda *args: [out.float() for out in gm(*args)]

    def product(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x

    torch.compile(product, backend=forgets)(torch.ones(3, 3))
    assert names(audited()) == {"dtype"}


def test_memory_that_was_never_written_is_not_compared(audited):
    def other_noise(outputs):
        outputs[0].data.fill_(3.0)

    def some(x):
        return torch.empty(50), x + 1

    torch.compile(some, backend=faulty(other_noise))(torch.ones(3))
    (call,) = audited()
    assert (call.verdict, call.differences) == ("not comparable", [])


def test_what_is_defined_beside_it_still_is_compared(audited):
    def both_wrong(outputs):
        outputs[0].data.fill_(3.0)
        outputs[1].data.add_(1e-3)

    def some(x):
        return torch.empty(50), x + 1

    torch.compile(some, backend=faulty(both_wrong))(torch.ones(3))
    assert paths(audited()) == {"result[1]"}


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i, v: x.index_put((i,), v),
        lambda x, i, v: x.scatter(0, i, v),
        lambda x, i, v: x.index_copy(0, i, v),
    ],
)
def test_which_of_several_writes_wins_is_not_compared(audited, write):
    def last_wins(gm, _inputs):
        def run(*args):
            (out,) = gm(*args)
            out = out.clone()
            out[1] = 5.0
            return [out]

        return run

    index, values = torch.tensor([1, 1, 2]), torch.tensor([5.0, 6.0, 7.0])
    torch.compile(write, backend=last_wins)(torch.zeros(4), index, values)
    (call,) = audited()
    assert call.verdict == "not comparable"


def test_a_wrong_element_is_found_beside_duplicate_writes(audited):
    def wrong(outputs):
        outputs[0].data[3] = 1.0

    index, values = torch.tensor([1, 1, 2]), torch.tensor([5.0, 6.0, 7.0])
    torch.compile(lambda x: x.index_put((index,), values), backend=faulty(wrong))(torch.zeros(4))
    assert kinds(audited()) == {"value"}


def test_sparse_gradients(audited):
    table = torch.nn.Embedding(5, 3, sparse=True)
    compiled = torch.compile(table, backend="eager")
    compiled(torch.tensor([1, 1, 2])).sum().backward()
    assert {call.verdict for call in audited()} <= {"agrees", "ran eager"}


def test_a_stance_that_forbids_to_compile_is_a_refusal(audited):
    compiled = torch.compile(lambda x: x + 1, backend="eager", dynamic=False)
    compiled(torch.ones(2))
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError):
        compiled(torch.ones(3))
    assert [call.verdict for call in audited()] == ["agrees", "refused"]


def test_a_read_only_mapped_file(audited, tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(torch.arange(4, dtype=torch.float32).numpy().tobytes())
    mapped = torch.from_file(str(path), shared=False, size=4, dtype=torch.float32)
    torch.compile(lambda x: x * 2, backend="eager")(mapped)
    assert [call.verdict for call in audited()] == ["agrees"]


def test_two_activations_that_are_parts_of_one_buffer(audited):
    x, y = (torch.ones(2, 3, requires_grad=True) * 2).unbind()
    torch.compile(lambda x, y: x * y, backend="aot_eager")(x, y).sum().backward()
    assert [call.verdict for call in audited()] == ["agrees"]


@pytest.mark.parametrize(("off", "expected"), [(2e-7, set()), (1e-4, {"value"})])
def test_a_python_float_has_the_rounding_of_the_tensor_it_came_from(audited, off, expected):
    def nudge(outputs):
        outputs[0].data.mul_(1 + off)

    torch.compile(lambda x: (x * 2).sum().item(), backend=faulty(nudge))(torch.rand(1000))
    assert names(audited()) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("content", [0, 1, 57])
def test_whatever_unwritten_memory_holds_it_is_not_compared(audited, dtype, content):
    def other(outputs):
        outputs[0].logical_not_()

    def some(x):
        return torch.empty(200, dtype=dtype), x

    with_content = faulty(other)
    torch.compile(some, backend=with_content)(torch.full((3,), float(content)))
    assert {call.verdict for call in audited()} <= {"agrees", "not comparable"}


@pytest.mark.parametrize(
    ("eager", "compiled", "expected"),
    [
        (lambda y: 3.0, lambda y: 3, {"type"}),
        (lambda y: (y + 1).numpy(), lambda y: y + 1, {"type"}),
        (lambda y: (y + 1).numpy(), lambda y: (y + 1).double().numpy(), {"dtype"}),
    ],
)
def test_what_eager_gives_again_as_an_array_or_a_float_is_settled(
    audited, eager, compiled, expected
):
    def give(x):
        y = x * 2
        return y, compiled(y) if torch.compiler.is_compiling() else eager(y)

    torch.compile(give, backend="eager")(torch.ones(3))
    assert names(audited()) == expected


@pytest.mark.parametrize("amount", [1, 0.5, "text"])
@pytest.mark.parametrize("compiling", [True, False], ids=["compiled", "eager"])
def test_what_only_one_side_makes_is_found(audited, amount, compiling):
    made = {}

    def make(x):
        if torch.compiler.is_compiling() == compiling:
            made["n"] = amount
        return x * 2

    torch.compile(make, backend="eager")(torch.ones(3))
    assert [(d.name, d.path) for d in audited()[0].differences] == [
        ("state/structure", "made['n']")
    ]


def test_an_argument_that_is_given_other_memory(audited):
    other = doing(lambda x: x.set_(x.t().contiguous().t()))
    torch.compile(lambda x: x * 2, backend=other)(torch.ones(4, 5))
    assert names(audited()) == {"argument/stride"}


@pytest.mark.parametrize("wrong", [False, True])
def test_gradients_of_a_reentrant_checkpoint_are_not_compared_and_its_results_are(audited, wrong):
    def layer(x):
        return (x @ weight).tanh()

    def f(x):
        return checkpoint(layer, x, use_reentrant=True).sum()

    weight = torch.nn.Parameter(torch.randn(4, 4))
    backend = faulty(lambda outputs: outputs[0].data.add_(1)) if wrong else "aot_eager"
    torch.compile(f, backend=backend)(torch.randn(3, 4, requires_grad=True)).backward()
    assert weight.grad.any()
    (call,) = audited()
    found = ("diverges", {"result"}) if wrong else ("agrees", set())
    assert (call.verdict, paths([call])) == found
    assert "use_reentrant=True" in call.detail


def test_the_call_that_gives_a_lazy_module_its_shape_is_not_compared_and_the_next_is(audited):
    module = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.ReLU())
    compiled = torch.compile(module, backend="aot_eager")
    for _ in range(2):
        compiled(torch.randn(2, 4)).sum().backward()
    assert module[0].weight.shape == (3, 4)
    first, second = audited()
    assert (first.verdict, second.verdict) == ("not comparable", "agrees")
    assert "has no shape until" in first.detail


def test_a_module_on_the_meta_device_has_no_values_to_compare(audited):
    skeleton = torch.nn.Linear(3, 2, device="meta")
    parameters = {"weight": torch.randn(2, 3), "bias": torch.randn(2)}

    @torch.compile(backend="aot_eager")
    def f(x):
        return torch.func.functional_call(skeleton, parameters, (x,))

    f(torch.randn(4, 3))
    assert [call.verdict for call in audited()] == ["agrees"]


def test_marks_of_the_compiler_on_parameters_are_no_state(audited):
    model = torch.nn.Linear(4, 4).eval()
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        torch.compile(model)(torch.ones(2, 4))
    assert hasattr(model.weight, "_is_frozen_param")
    assert {call.verdict for call in audited()} == {"agrees"}
