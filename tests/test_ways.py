"""Every way to compile is audited: whichever way a program takes, a fault in it is found.

Dynamo traces the branch that `torch.compiler.is_compiling()` opens, and eager takes the other: so
each program of this module can be made wrong in compiled code, in its value, in its gradient alone,
or in what it writes in place. Nothing planted, everything agrees.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
import os
import tempfile
import threading
import types
import typing

import pytest
import torch
from torch._dynamo.aot_compile import ModelInput

FAULTS = {"value": "value", "gradient": "grad/value", "mutation": "argument/value"}
"""What can be planted -> what the audit names it."""

IN_STATE = {"mutation": "state/value"}
"""What it names a wrong write to a module, an attribute or a closure."""

PLANTED = types.SimpleNamespace(faults=())

WAYS = []


def way(function=None, *, names=None, one_by_one=False):
    """A way to compile: calls what it compiled, and returns the result.

    `names`: what the audit names a fault, where that is not what FAULTS says, or None for one that
    this way can not have; `one_by_one`: each fault alone as well.
    """
    if function is None:
        return functools.partial(way, names=names, one_by_one=one_by_one)
    possible = {fault: name for fault, name in (FAULTS | (names or {})).items() if name}
    together = [(), tuple(possible)]
    for faults in together + [(fault,) for fault in possible if one_by_one]:
        marks = [] if faults else [pytest.mark.nightly]
        name = f"{function.__name__}-{' and '.join(faults) or 'nothing'}"
        expected = {possible[fault] for fault in faults}
        WAYS.append(pytest.param(function, faults, expected, id=name, marks=marks))
    return function


def is_planted(fault):
    return torch.compiler.is_compiling() and fault in PLANTED.faults


def body(x, seen):
    """What all ways compile: a value, a gradient and a write in place, each of them right.

    The wrong value has the right gradient, and the wrong gradient the right value.
    """
    y = (x * 2).sin()
    if is_planted("value"):
        y = y + 1
    if is_planted("gradient"):
        y = y + (x - x.detach())
    seen.add_(2 if is_planted("mutation") else 1)
    return y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        return body(x, self.seen)


def backward(result):
    """What a program does with a result that has a gradient."""
    if isinstance(result, torch.Tensor) and result.requires_grad:
        result.sum().backward()


@pytest.fixture
def x():
    return torch.linspace(0.1, 0.9, 5, requires_grad=True)


@pytest.fixture
def seen():
    return torch.zeros(1)


# Functions.


@way(one_by_one=True)
def function(x, seen):
    return torch.compile(body, backend="aot_eager")(x, seen)


@way
def decorator(x, seen):
    @torch.compile
    def decorated(x, seen):
        return body(x, seen)

    with torch.compiler.set_stance("default", force_backend="eager"):
        return decorated(x, seen)


@way
def decorator_with_arguments(x, seen):
    @torch.compile(backend="eager")
    def decorated(x, seen):
        return body(x, seen)

    return decorated(x, seen)


@way
def fullgraph(x, seen):
    return torch.compile(body, backend="eager", fullgraph=True)(x, seen)


@way
def lambda_(x, seen):
    return torch.compile(lambda x, seen: body(x, seen), backend="eager")(x, seen)


@way(names=IN_STATE)
def nested_function(x, seen):
    def inner(x):
        return body(x, seen)

    return torch.compile(inner, backend="eager")(x)


@way(names=IN_STATE)
def partial(x, seen):
    return torch.compile(functools.partial(body, seen=seen), backend="eager")(x)


@way
def partial_of_a_compiled_function(x, seen):
    return functools.partial(torch.compile(body, backend="eager"), x)(seen)


class Callable:
    def __init__(self, seen):
        self.seen = seen

    def __call__(self, x):
        return body(x, self.seen)


@way(names=IN_STATE)
def callable_object(x, seen):
    return torch.compile(Callable(seen), backend="eager")(x)


@way
def compiled_class(x, seen):
    @torch.compile(backend="eager")
    class Decorated(Callable):
        pass

    return Decorated(seen)(x)


@way
def compiled_module_class(x, _seen):
    @torch.compile(backend="eager")
    class Decorated(Model):
        pass

    return Decorated()(x)


@way(names=IN_STATE)
def bound_method(x, seen):
    return torch.compile(Callable(seen).__call__, backend="eager")(x)


@way
def method_decorated_in_the_class(x, seen):
    class Thing:
        def __init__(self, seen):
            self.seen = seen

        @torch.compile(backend="eager")
        def method(self, x):
            return body(x, self.seen)

    return Thing(seen).method(x)


@way
def staticmethod_(x, seen):
    class Thing:
        @staticmethod
        @torch.compile(backend="eager")
        def method(x, seen):
            return body(x, seen)

    return Thing.method(x, seen)


@way
def staticmethod_inside(x, seen):
    class Thing:
        @torch.compile(backend="eager")
        @staticmethod
        def method(x, seen):
            return body(x, seen)

    return Thing().method(x, seen)


@way
def classmethod_(x, seen):
    class Thing:
        @classmethod
        @torch.compile(backend="eager")
        def method(cls, x, seen):
            return body(x, seen)

    return Thing.method(x, seen)


@way
def generator_based(x, seen):
    @torch.compile(backend="eager")
    def last(x, seen):
        for part in (body(x, seen) for _ in range(1)):
            y = part
        return y

    return last(x, seen)


@way
def function_with_a_graph_break(x, seen):
    @torch.compile(backend="eager")
    def broken(x, seen):
        x = x + 0
        torch._dynamo.graph_break()
        return body(x, seen)

    return broken(x, seen)


@way
def dynamo_optimize(x, seen):
    return torch._dynamo.optimize("eager")(body)(x, seen)


@way
def dynamo_optimize_assert(x, seen):
    return torch._dynamo.optimize_assert("eager")(body)(x, seen)


# Modules.


@way(names=IN_STATE, one_by_one=True)
def module(x, _seen):
    return torch.compile(Model(), backend="aot_eager")(x)


@way(names=IN_STATE)
def module_in_place(x, _seen):
    model = Model()
    model.compile(backend="eager")
    return model(x)


@way(names=IN_STATE)
def forward_of_a_module(x, _seen):
    model = Model()
    model.forward = torch.compile(model.forward, backend="eager")
    return model(x)


@way
def forward_decorated_in_the_class(x, _seen):
    class Decorated(Model):
        @torch.compile(backend="eager")
        def forward(self, x):
            return body(x, self.seen)

    return Decorated()(x)


@way(names=IN_STATE)
def inner_module_of_an_eager_one(x, _seen):
    inner = torch.compile(Model(), backend="eager")
    return torch.nn.Sequential(torch.nn.Identity(), inner)(x)


@way(names=IN_STATE)
def inner_module_in_place(x, _seen):
    outer = torch.nn.Sequential(torch.nn.Identity(), Model())
    outer[1].compile(backend="eager")
    return outer(x)


@way(names=IN_STATE)
def sequential(x, _seen):
    return torch.compile(torch.nn.Sequential(Model()), backend="eager")(x)


# A compiled callable within another.


@way
def called_inside_another(x, seen):
    inner = torch.compile(body, backend="eager")
    return torch.compile(lambda x, seen: inner(x, seen) + 0, backend="eager")(x, seen)


@way
def called_inside_another_after_a_break(x, seen):
    inner = torch.compile(body, backend="eager")

    @torch.compile(backend="eager")
    def outer(x, seen):
        torch._dynamo.graph_break()
        return inner(x, seen)

    return outer(x, seen)


@way
def compiled_twice(x, seen):
    return torch.compile(torch.compile(body, backend="eager"), backend="eager")(x, seen)


@way
def called_from_a_disabled_function(x, seen):
    inner = torch.compile(body, backend="eager")

    @torch.compiler.disable
    def between(x, seen):
        return inner(x, seen)

    return torch.compile(lambda x, seen: between(x + 0, seen), backend="eager")(x, seen)


@way
def with_a_disabled_part(x, seen):
    disabled = torch.compiler.disable(lambda x: x * 2)
    return torch.compile(lambda x, seen: disabled(body(x, seen)), backend="eager")(x, seen)


@way
def nested_compile_region(x, seen):
    region = torch.compiler.nested_compile_region(lambda x: body(x, torch.zeros(1)))

    @torch.compile(backend="aot_eager", fullgraph=True)
    def regional(x, seen):
        y = region(x)
        seen.add_(2 if is_planted("mutation") else 1)
        return y

    return regional(x, seen)


@way
def checkpointed(x, seen):
    def part(x):
        return torch.utils.checkpoint.checkpoint(
            lambda x: body(x, torch.zeros(1)), x, use_reentrant=False
        )

    @torch.compile(backend="aot_eager")
    def checkpointed(x, seen):
        y = part(x)
        seen.add_(2 if is_planted("mutation") else 1)
        return y

    return checkpointed(x, seen)


# Settings.


@way
def dynamic(x, seen):
    return torch.compile(body, backend="eager", dynamic=True)(x, seen)


@way
def static(x, seen):
    compiled = torch.compile(body, backend="eager", dynamic=False)
    return compiled(x, seen) + compiled(torch.cat([x, x]), seen).sum()


@way
def dynamic_after_a_second_size(x, seen):
    compiled = torch.compile(body, backend="eager")
    return compiled(x, seen) + compiled(torch.cat([x, x]), seen).sum()


def modes(mode):
    @functools.wraps(body)
    def compiled(x, seen):
        return torch.compile(body, mode=mode)(x, seen)

    compiled.__name__ = f"mode_{mode}".replace("-", "_")
    return compiled


for mode in ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
    way(modes(mode))


@way
def options(x, seen):
    return torch.compile(body, options={"max_fusion_size": 1})(x, seen)


def debug_backend(backend):
    def compiled(x, seen):
        return torch.compile(body, backend=backend)(x, seen)

    compiled.__name__ = f"backend_{backend}"
    return compiled


for backend in (
    "eager_noexcept",
    "eager_debug",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
    "aot_ts",
    "invoke_subgraph",
    "ts",
):
    way(debug_backend(backend))


@way
def own_backend(x, seen):
    def backend(gm, inputs):
        return gm.forward

    return torch.compile(body, backend=backend)(x, seen)


@way
def own_backend_with_aot_autograd(x, seen):
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    backend = aot_autograd(fw_compiler=lambda gm, _: make_boxed_func(gm.forward))
    return torch.compile(body, backend=backend)(x, seen)


# Stances.


def twice_under(stance):
    def compiled(x, seen):
        compiled = torch.compile(body, backend="eager")
        with torch.compiler.set_stance(stance):
            compiled(x, seen)
            return compiled(x, seen)

    compiled.__name__ = stance
    return compiled


for stance in ("eager_then_compile", "aot_eager_then_compile"):
    way(twice_under(stance))


@way
def force_eager_and_back(x, seen):
    compiled = torch.compile(body, backend="eager")
    with torch.compiler.set_stance("force_eager"):
        compiled(x, seen)
    return compiled(x, seen)


@way
def eager_on_recompile(x, seen):
    compiled = torch.compile(body, backend="eager")
    compiled(x, seen)
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(torch.cat([x, x]), seen)
        return compiled(x, seen)


@way
def fail_on_recompile(x, seen):
    compiled = torch.compile(body, backend="eager")
    compiled(x, seen)
    with torch.compiler.set_stance("fail_on_recompile"):
        return compiled(x, seen)


# Arguments and results.


@way
def keywords(x, seen):
    return torch.compile(body, backend="eager")(seen=seen, x=x)


@way
def dict_(x, seen):
    compiled = torch.compile(lambda d: {"y": [body(d["x"], d["seen"])]}, backend="eager")
    return compiled({"x": x, "seen": seen})["y"][0]


@dataclasses.dataclass
class Data:
    x: torch.Tensor
    seen: torch.Tensor


@way
def dataclass(x, seen):
    compiled = torch.compile(lambda d: Data(body(d.x, d.seen), d.seen), backend="eager")
    return compiled(Data(x, seen)).x


class Named(typing.NamedTuple):
    x: torch.Tensor
    seen: torch.Tensor


@way
def named_tuple(x, seen):
    compiled = torch.compile(lambda d: Named(body(d.x, d.seen), d.seen), backend="eager")
    return compiled(Named(x, seen)).x


class ModelOutput(collections.OrderedDict):
    """As in libraries of models: the fields of a dataclass are items and attributes at once."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            self[field.name] = getattr(self, field.name)


@dataclasses.dataclass
class Output(ModelOutput):
    x: torch.Tensor = None
    seen: torch.Tensor = None


@way
def model_output(x, seen):
    compiled = torch.compile(lambda d: Output(body(d.x, d["seen"]), d.seen), backend="eager")
    return compiled(Output(x, seen))["x"]


class Tagged(torch.Tensor):
    """A subclass that only has another type."""


@way
def subclass_with_torch_function(x, seen):
    result = torch.compile(body, backend="eager")(x.as_subclass(Tagged), seen)
    assert type(result) is Tagged
    return result


class Wrapper(torch.Tensor):
    """A subclass that holds the tensor that it stands for."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(tensors, _context, _size, _stride):
        return Wrapper(tensors["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(thing):
            return thing.inner if isinstance(thing, Wrapper) else thing

        def wrap(thing):
            return Wrapper(thing) if isinstance(thing, torch.Tensor) else thing

        unwrapped = torch.utils._pytree.tree_map(unwrap, (args, kwargs or {}))
        out = torch.utils._pytree.tree_map(wrap, func(*unwrapped[0], **unwrapped[1]))
        return torch.utils._python_dispatch.return_and_correct_aliasing(
            func, args, kwargs or {}, out
        )


@way
def wrapper_subclass(x, seen):
    wrapped = Wrapper(x.detach()).requires_grad_()
    result = torch.compile(body, backend="aot_eager")(wrapped, Wrapper(seen))
    assert type(result) is Wrapper
    return result


# A module that changes between calls.


class Changing(Model):
    def __init__(self):
        super().__init__()
        self.scale = 1.0
        self.part = torch.nn.Linear(5, 5)

    def forward(self, x):
        # What was compiled before the change is not wrong: only what is compiled after it.
        if self.scale == 2.0:
            x = body(x, self.seen)
        return self.part(x)


def changing(change):
    def compiled(x, _seen):
        model = Changing()
        compiled = torch.compile(model, backend="eager")
        compiled(x)
        change(model)
        model.scale = 2.0
        return compiled(x)

    compiled.__name__ = f"module_with_{change.__name__}"
    way(compiled, names=IN_STATE)


@changing
def another_attribute(model):
    model.scale = 2.0


@changing
def another_parameter(model):
    model.part.weight = torch.nn.Parameter(torch.ones(5, 5))


@changing
def another_submodule(model):
    model.part = torch.nn.Identity()


@changing
def a_hook(model):
    model.part.register_forward_hook(lambda module, args, out: out * 2)


@changing
def a_full_backward_hook(model):
    model.part.register_full_backward_hook(lambda module, into, out: (into[0] * 2,))


# Training.


class Sgd(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                lr = group["lr"] * (2 if is_planted("mutation") else 1)
                parameter.add_(parameter.grad, alpha=-lr)


@way(names={"value": None, "gradient": None, "mutation": "state/value"})
def optimizer_step(_x, _seen):
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = Sgd([weight], lr=0.1)
    torch.compile(optimizer.step, backend="eager")()


@way(names={"value": None, "gradient": None, "mutation": "state/value"})
def optimizer_step_in_place(_x, _seen):
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = Sgd([weight], lr=0.1)
    optimizer.step = torch.compile(optimizer.step, backend="eager")
    optimizer.step()


@way(names={"gradient": "state/value", "mutation": "state/value"}, one_by_one=True)
def train_step(x, _seen):
    model = torch.nn.Sequential(torch.nn.Linear(5, 5), Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step(x.detach())


# Backward passes that are compiled when they run.


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * (3 if is_planted("gradient") else 2)


def enabled_compiled_autograd():
    return torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager"))


@way(names={"value": None, "mutation": None, "gradient": "argument/value"})
def compiled_autograd_of_an_eager_forward(x, _seen):
    result = Doubled.apply(x).sum()
    with enabled_compiled_autograd():
        result.backward()


@way
def compiled_autograd_of_a_compiled_forward(x, seen):
    result = torch.compile(body, backend="aot_eager")(x, seen)
    with enabled_compiled_autograd():
        result.sum().backward()


@way(names={"gradient": "state/value", "mutation": "state/value"})
def compiled_autograd_in_a_train_step(x, _seen):
    model = torch.nn.Sequential(torch.nn.Linear(5, 5), Model())

    @torch.compile(backend="eager")
    def step(x):
        loss = model(x).sum()
        loss.backward()
        return loss.detach()

    with torch._dynamo.config.patch(compiled_autograd=True):
        return step(x.detach())


# Ahead of time.


def exported(x, seen, **kwargs):
    class Written(torch.nn.Module):
        def forward(self, x, seen):
            return body(x, seen)

    model = Written()
    return model, torch.export.export(model, (x, seen), **kwargs)


@way
def exported_program(x, seen):
    _, program = exported(x, seen)
    return program.module()(x, seen)


@way
def exported_program_of_a_module_that_is_gone(x, seen):
    return exported(x, seen)[1].module()(x, seen)


@way
def exported_program_without_guards(x, seen):
    _, program = exported(x, seen)
    return program.module(check_guards=False)(x, seen)


@way
def exported_program_strict(x, seen):
    _, program = exported(x, seen, strict=True)
    return program.module()(x, seen)


@way(names=IN_STATE)
def exported_program_with_state(x, _seen):
    module = torch.export.export(Model(), (x,)).module()
    module(x)
    return module(x)


# Decomposing drops `detach`, and the wrong gradient with it.
@way(names={"gradient": None})
def exported_program_decomposed(x, seen):
    _, program = exported(x, seen)
    return program.run_decompositions().module()(x, seen)


@way
def exported_program_from_a_file(x, seen):
    _model, program = exported(x, seen)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file).module()(x, seen)


@way(names=IN_STATE)
def exported_program_with_state_from_a_file(x, _seen):
    model = Model()
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,)), file)
    file.seek(0)
    module = torch.export.load(file).module()
    module(x)
    return module(x)


@way
def compiled_exported_program(x, seen):
    _, program = exported(x, seen)
    return torch.compile(program.module(), backend="eager")(x, seen)


@way(names={"gradient": None})
def aot_inductor_package(x, seen):
    _model, program = exported(x, seen)
    with tempfile.TemporaryDirectory() as folder:
        file = torch._inductor.aoti_compile_and_package(
            program, package_path=os.path.join(folder, "model.pt2")
        )
        return torch._inductor.aoti_load_package(file)(x, seen)


@way(names={"gradient": None, "mutation": None})
def aot_inductor_package_with_state(x, _seen):
    program = torch.export.export(Model(), (x,))
    with tempfile.TemporaryDirectory() as folder:
        file = torch._inductor.aoti_compile_and_package(
            program, package_path=os.path.join(folder, "model.pt2")
        )
        return torch._inductor.aoti_load_package(file)(x)


def compiled_ahead(function, *args):
    return torch.compile(function, fullgraph=True, backend="aot_eager").aot_compile((args, {}))


@way
def aot_compiled_function(x, seen):
    return compiled_ahead(body, x, seen)(x, seen)


@way(names=IN_STATE)
def aot_compiled_closure(x, seen):
    return compiled_ahead(lambda x: body(x, seen), x)(x)


@way
def aot_compiled_method(x, seen):
    thing = Callable(seen)
    return compiled_ahead(thing.__call__, x)(thing, x)


@way(names=IN_STATE)
def aot_compiled_module(x, _seen):
    model = torch.compile(Model(), fullgraph=True, backend="inductor")
    model._aot_compile([ModelInput((x,), {}, [])])
    return model(x)


@way
def aot_compiled_function_from_a_file(x, seen):
    compiled = torch.compile(body, fullgraph=True).aot_compile(((x, seen), {}))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "body")
        compiled.save_compiled_function(path)
        with open(path, "rb") as file:
            return torch.compiler.load_compiled_function(file)(x, seen)


# Threads.


@way
def another_thread(x, seen):
    results = []
    compiled = torch.compile(body, backend="eager")
    thread = threading.Thread(target=lambda: results.append(compiled(x, seen)))
    thread.start()
    thread.join()
    return results[0]


@way
def several_threads_at_once(x, seen):
    results = []
    compiled = torch.compile(body, backend="eager")
    threads = [
        threading.Thread(target=lambda: results.append(compiled(x, torch.zeros(1))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.stack(results)


@pytest.mark.parametrize(("compiled", "faults", "expected"), WAYS)
def test_a_fault_is_found_whichever_way_it_was_compiled(
    artefacts_audited, monkeypatch, x, seen, compiled, faults, expected
):
    monkeypatch.setattr(PLANTED, "faults", faults)
    backward(compiled(x, seen))
    calls = artefacts_audited()
    assert {difference.name for call in calls for difference in call.differences} == expected
    # What a stance makes run eagerly is no compiled call.
    verdicts = {call.verdict for call in calls} - {"ran eager"}
    assert verdicts <= {"diverges", "agrees"} if faults else verdicts == {"agrees"}, calls


def test_faults_of_a_builtin_are_found(audited, x):
    def spoilt(gm, _inputs):
        def run(x):
            return [gm(x)[0] + 1 + (x - x.detach())]

        return run

    def forgetful(gm, _inputs):
        return lambda x: gm(x.clone())

    torch.compile(torch.sin, backend=spoilt)(x).sum().backward()
    torch.compile(torch.sin_, backend=forgetful)(torch.ones(5))
    found = [sorted(d.name for d in call.differences) for call in audited()]
    # The result of the second is right: only it is not the argument, and the argument is as before.
    assert found == [["grad/value", "value"], ["aliasing", "argument/value"]]


@pytest.mark.parametrize("builtin", [torch.sin, torch.sin_, torch.nn.functional.relu, len])
def test_a_builtin_agrees(audited, builtin):
    torch.compile(builtin, backend="eager")(torch.ones(3))
    assert {call.verdict for call in audited()} <= {"agrees", "ran eager"}


def test_a_backend_that_runs_the_graph_while_it_compiles_is_found(audited, x, seen):
    """torch's own: it traces with the arguments of the call, and so writes to them twice."""
    torch.compile(body, backend="pre_dispatch_eager")(x, seen)
    assert seen.item() == 2
    (call,) = audited()
    assert {difference.name for difference in call.differences} == {"argument/value"}


def test_compiled_autograd_is_asked_for_what_it_is_asked_for_without_the_audit(tmp_path):
    from measured import inside

    def seen_by_the_compiler():
        graphs = []

        def backend(graph, _inputs):
            graphs.append(
                [
                    (node.op, getattr(node.target, "__name__", node.target))
                    for node in graph.graph.nodes
                ]
            )
            return graph

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.ReLU(), torch.nn.Dropout())
        compiled = torch.compile(model, backend="aot_eager")
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend=backend)):
            for _ in range(3):
                compiled(torch.ones(2, 5)).relu().sum().backward()
        grads = [parameter.grad.tolist() for parameter in model.parameters()]
        torch._dynamo.reset()
        return graphs, grads, torch.rand(1).item()

    without = seen_by_the_compiler()
    with inside.audited(tmp_path / "events") as calls:
        assert seen_by_the_compiler() == without
        verdicts = [(call.callable, call.verdict, call.detail) for call in calls()]
    assert ("Sequential", "agrees", "") in verdicts
    assert {verdict for _, verdict, _ in verdicts} == {"agrees"}
