"""Artefacts: what is audited of what is compiled ahead of time, and that nobody notices it."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import pickle
import weakref

import pytest
import torch

from measured import artefacts


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).sin()


@pytest.fixture
def x():
    return torch.ones(2, 4)


def told(calls):
    return [(call.verdict, call.detail) for call in calls]


def saved(program):
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return file


def forget_files(monkeypatch):
    """What another process wrote looks like that: nothing is known of the file."""
    monkeypatch.setattr(artefacts, "_of_files", {})


def test_a_program_from_another_process_is_not_comparable(artefacts_audited, monkeypatch, x):
    file = saved(torch.export.export(Model(), (x,)))
    forget_files(monkeypatch)
    torch.export.load(file).module()(x)
    assert told(artefacts_audited()) == [("not comparable", artefacts.UNKNOWN)]


def test_a_function_from_another_process_is_not_comparable(artefacts_audited, monkeypatch, x):
    def double(x):
        return x * 2

    compiled = torch.compile(double, backend="aot_eager", fullgraph=True).aot_compile(((x,), {}))
    data = type(compiled).serialize(compiled).serialized_data
    forget_files(monkeypatch)
    assert torch.compiler.load_compiled_function(io.BytesIO(data))(x).sum() == 16
    assert told(artefacts_audited()) == [("not comparable", artefacts.UNKNOWN)]


def test_a_file_does_not_keep_what_it_was_made_from(artefacts_audited, x):
    model = Model()
    file, alive = saved(torch.export.export(model, (x,))), weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None
    torch.export.load(file).module()(x)
    assert told(artefacts_audited()) == [("not comparable", artefacts.GONE)]


def test_a_called_program_is_let_go_of(artefacts_audited, x):
    program = torch.export.export(Model(), (x,))
    module = program.module()
    module(x).sum().backward()
    alive = weakref.ref(program), weakref.ref(module)
    del program, module
    gc.collect()
    assert [reference() for reference in alive] == [None, None]


def test_a_program_runs_on_its_own_parameters(artefacts_audited, x):
    model = Model()
    module = torch.export.load(saved(torch.export.export(model, (x,)))).module()
    with torch.no_grad():
        model.linear.weight.zero_()
    result = module(x)
    result.sum().backward()
    assert told(artefacts_audited()) == [("agrees", "")]
    assert module.linear.weight.grad is not None
    assert model.linear.weight.grad is None


def test_a_package_that_has_written_to_its_state_is_not_comparable(artefacts_audited, tmp_path, x):
    class Counting(Model):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen.add_(1)
            return super().forward(x) * self.seen

    program = torch.export.export(Counting(), (x,))
    file = torch._inductor.aoti_compile_and_package(program, package_path=f"{tmp_path}/m.pt2")
    package = torch._inductor.aoti_load_package(file)
    package(x)
    package(x)
    keeps = "the package keeps to itself what it has written"
    assert told(artefacts_audited()) == [("agrees", ""), ("not comparable", keeps)]


def test_a_package_with_state_that_it_only_reads_is_compared(artefacts_audited, tmp_path, x):
    model = torch.nn.Sequential(Model(), torch.nn.BatchNorm1d(4)).eval()
    program = torch.export.export(model, (x,))
    file = torch._inductor.aoti_compile_and_package(program, package_path=f"{tmp_path}/m.pt2")
    package = torch._inductor.aoti_load_package(file)
    package(x)
    package(x)
    assert told(artefacts_audited()) == [("agrees", "")] * 2


def test_a_wrong_program_is_found(artefacts_audited, x):
    model = Model()
    module = torch.export.export(model, (x,)).module()
    (sin,) = (node for node in module.graph.nodes if "sin" in str(node.target))
    sin.target = torch.ops.aten.cos.default
    module.recompile()
    module(x)
    (call,) = artefacts_audited()
    assert call.verdict == "diverges"
    assert call.callable == "Model"


def test_what_eager_leaves_behind_is_not_left(artefacts_audited, x):
    class Counting(Model):
        calls = 0

        def forward(self, x):
            self.calls += 1
            print("eager")
            return super().forward(x)

    model = Counting()
    module = torch.export.export(model, (x,)).module()
    before = dict(vars(model))
    parameters = list(model.parameters())
    module(x)
    assert vars(model) == before
    assert all(one is other for one, other in zip(parameters, model.parameters(), strict=True))
    # The program has no such counter: that is a difference.
    (call,) = artefacts_audited()
    assert [difference.name for difference in call.differences] == ["state/value"]


def test_inputs_that_a_program_was_not_made_for_are_refused(artefacts_audited, x):
    module = torch.export.export(Model(), (x,)).module()
    with pytest.raises(AssertionError):
        module(torch.ones(3, 4))
    (call,) = artefacts_audited()
    assert call.verdict == "refused"


def test_inputs_that_a_program_without_guards_was_not_made_for_are_refused(artefacts_audited, x):
    module = torch.export.export(Model(), (x,)).module(check_guards=False)
    with pytest.raises(RuntimeError):
        module(torch.ones(3, 4))
    (call,) = artefacts_audited()
    assert call.verdict == "refused"


def test_inputs_that_a_function_was_not_compiled_for_are_refused(artefacts_audited, x):
    compiled = torch.compile(lambda x: x * 2, backend="aot_eager", fullgraph=True, dynamic=False)
    ahead = compiled.aot_compile(((x,), {}))
    with pytest.raises(RuntimeError):
        ahead(torch.ones(3, 4))
    (call,) = artefacts_audited()
    assert call.verdict == "refused"


def test_tracing_a_program_runs_nothing(artefacts_audited, x):
    program = torch.export.export(Model(), (x,))
    again = torch.export.export(program.module(), (x,))
    program.run_decompositions()
    torch.compile(program.module(), backend="eager")
    assert artefacts_audited() == []
    again.module()(x)
    assert told(artefacts_audited()) == [("agrees", "")]


def test_artefacts_look_as_without_the_audit(artefacts_audited, x):
    program = torch.export.export(Model(), (x,))
    module = program.module()
    module(x)
    assert not [name for name in vars(program) | vars(module) if "audit" in name]
    assert list(inspect.signature(module.forward).parameters) == ["x"]
    assert isinstance(module, torch.fx.GraphModule)
    assert copy.deepcopy(module)(x).shape == (2, 4)
    function = torch.export._trace._export
    assert "mod" in inspect.signature(function).parameters
    assert function.__name__ == "_export"
    kind = torch._dynamo.aot_compile.AOTCompiledFunction
    assert inspect.ismethod(kind.deserialize)
    assert next(iter(inspect.signature(kind.deserialize).parameters)) == "data"
    assert pickle.loads(pickle.dumps(kind)) is kind
