"""Faults in what a call writes: to its arguments, to modules, to everything it can reach."""

from __future__ import annotations

import collections
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mutants import backends
from mutants.backends import constant, replaced
from mutants.fault import Compile, Fault, Make, calling, found
from mutants.forward import Answer, Plain, numbers, once

X = once(numbers(4, 5))


def written(
    name: str,
    expected: str,
    maker: backends.Maker,
    function: Callable[..., Any] = lambda x: x.mul_(2) + 1,
    make: Make = X,
) -> Fault:
    """What compiled code writes to its arguments is wrong."""
    return Fault(name, "state", found(expected), calling(function, make), maker)


def kept(
    name: str,
    expected: str,
    build: Callable[[], Any],
    eager: Callable[[Any, torch.Tensor], Any],
    compiled: Callable[[Any, torch.Tensor], Any],
) -> Fault:
    """A function writes to a `state` that it holds in its closure, compiled code otherwise."""

    def program(compile: Compile, planted: bool) -> None:
        state = build()

        def function(x: torch.Tensor) -> torch.Tensor:
            if planted and torch.compiler.is_compiling():
                compiled(state, x)
            else:
                eager(state, x)
            return x * 2

        compile(function)(numbers(4, 5))

    return Fault(name, "state", found(*expected.split(", ")), program)


def nothing(*_: Any) -> None:
    """What was to be written is not."""


def _put(value: Any) -> Callable[[Any, torch.Tensor], None]:
    return lambda state, _: state.__setitem__("n", value)


def _set(value: Any) -> Callable[[Any, torch.Tensor], None]:
    return lambda state, _: setattr(state, "n", value)


ARGUMENTS = (
    written("a write to an argument lost", "argument/value at args[0]", backends.forgetful(),
            lambda x: x.mul_(2) * 0),
    written("a write to an argument done twice", "argument/value at args[0]",
            backends.inputs(lambda args: args[0].mul_(2))),
    written("an argument written to that eager leaves alone", "argument/value at args[0]",
            backends.inputs(lambda args: args[0].add_(1)), lambda x: x * 2),
    written("one element of an argument written to", "argument/value at args[0]",
            backends.inputs(lambda args: args[0].view(-1)[7].mul_(1.1)), lambda x: x * 2),
    written("NaN written to an argument", "argument/nan at args[0]",
            backends.inputs(lambda args: args[0].view(-1)[7].fill_(math.nan)), lambda x: x * 2),
    written("an infinity written to an argument", "argument/inf at args[0]",
            backends.inputs(lambda args: args[0].view(-1)[7].fill_(math.inf)), lambda x: x * 2),
    written("an integer argument written to", "argument/value at args[0]",
            backends.inputs(lambda args: args[0].add_(1)), lambda x: x * 2,
            once(torch.arange(20))),
    written("the other argument written to", "argument/value at args[1]",
            backends.inputs(lambda args: args[1].add_(1)), lambda x, y: x + y,
            once(numbers(4, 5), numbers(4, 5) + 1)),
    written("an argument resized", "argument/shape at args[0]",
            backends.inputs(lambda args: args[0].resize_(3, 5)), lambda x: x * 2),
    written("the strides of an argument changed", "argument/stride at args[0]",
            backends.inputs(lambda args: args[0].set_(args[0].t().contiguous().t())),
            lambda x: x * 2),
    written("an argument that wants a gradient now", "argument/requires_grad at args[0]",
            backends.inputs(lambda args: args[0].requires_grad_()), lambda x: x * 2),
    written("a write through a view lost", "argument/value at args[0]",
            backends.surgery(replaced("zero_", torch.zeros_like)), lambda x: x[0].zero_() + 1),
    written("a scatter to an argument elsewhere", "argument/value at args[0]",
            backends.surgery(constant("index_fill_", 0, 1)),
            lambda x, i: x.index_fill_(0, i, 9.0) * 0, once(numbers(4, 5), torch.tensor([2]))),
    written("out= ignored", "argument/value at args[1]",
            backends.surgery(replaced("sin", lambda x, out: torch.sin(x))),
            lambda x, y: torch.sin(x, out=y) * 0, once(numbers(4, 5), torch.zeros(4, 5))),
)  # fmt: skip


def _counted(n: int) -> Callable[[], Any]:
    return lambda: Plain(n=n)


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


class Shared:
    """Keeps its state in the class."""

    n = 0
    seen: list[int] = []  # noqa: RUF012 - what is written to is the list that all instances share.


def _fresh_shared() -> Any:
    Shared.n = 0
    Shared.seen.clear()
    return Shared()


def _count_in_class(amount: int) -> Callable[[Any, torch.Tensor], None]:
    return lambda state, _: setattr(type(state), "n", amount)


CONTAINERS = (
    kept("an attribute not written", "state/value at state.n", _counted(0), _set(5), nothing),
    kept("-1 in an attribute", "state/value at state.n", _counted(0), _set(5), _set(-1)),
    kept("an attribute of another type", "state/type at state.n", _counted(0), _set(5), _set(5.0)),
    kept("a float attribute off", "state/value at state.n", _counted(0), _set(0.1), _set(0.11)),
    kept("a NaN in an attribute", "state/nan at state.n", _counted(0), _set(0.1), _set(math.nan)),
    kept("a bool attribute flipped", "state/value at state.n", _counted(0), _set(True),
         _set(False)),
    kept("a text attribute off", "state/value at state.n", _counted(0), _set("even"), _set("odd")),
    kept("None in an attribute", "state/type at state.n", _counted(0), _set(1), _set(None)),
    kept("an attribute that only eager makes", "state/structure at state.n", Plain, _set(1),
         nothing),
    kept("a float attribute that only eager makes", "state/structure at state.n", Plain, _set(0.5),
         nothing),
    kept("an attribute that only compiled code makes", "state/structure at state.n", Plain,
         nothing, _set(1)),
    kept("an attribute written that eager leaves alone", "state/value at state.n", _counted(0),
         nothing, _set(1)),
    kept("an attribute deleted", "state/structure at state.n", _counted(0), nothing,
         lambda state, _: delattr(state, "n")),
    kept("a slot off", "state/value at state.n", Slotted, _set(1), _set(2)),
    kept("a field of a dataclass off", "state/value at state.loss", lambda: Answer(1, 1),
         lambda state, _: setattr(state, "loss", 2), lambda state, _: setattr(state, "loss", 3)),
    kept("a class attribute off", "state/value at Shared.n", _fresh_shared, _count_in_class(1),
         _count_in_class(2)),
    kept("an append lost", "state/structure at state[0], state/value at state.length", list,
         lambda state, _: state.append(1), nothing),
    kept("an append done twice", "state/structure at state[1], state/value at state.length", list,
         lambda state, _: state.append(1), lambda state, _: state.extend([1, 1])),
    kept("an append at the other end", "state/value at state[0], state/value at state[1]",
         lambda: [7], lambda state, _: state.append(1), lambda state, _: state.insert(0, 1)),
    kept("a list not cleared", "state/structure at state[0], state/value at state.length",
         lambda: [7], lambda state, _: state.clear(), nothing),
    kept("an item of a dict off", "state/value at state['n']", dict, _put(1), _put(2)),
    kept("an item of a dict missing", "state/structure at state['n']", dict, _put(1), nothing),
    kept("an item of a dict too many", "state/structure at state['n']", dict, nothing, _put(1)),
    kept("a key of a dict misspelt", "state/structure at state['n'], state/structure at state['m']",
         dict, _put(1), lambda state, _: state.update(m=1)),
    kept("a default dict's item off", "state/value at state['n']",
         lambda: collections.defaultdict(int), _put(1), _put(2)),
    kept("an item of a set that is kept missing", "state/value at state.length, state/value at state.items",
         lambda: {7}, lambda state, _: state.add(8), nothing),
    kept("a deque filled at the other end", "state/value at state[0], state/value at state[1]",
         lambda: collections.deque([7]), lambda state, _: state.append(1),
         lambda state, _: state.appendleft(1)),
    kept("an item of a nested dict", "state/value at state['inner']['n']",
         lambda: {"inner": {"n": 0}}, lambda state, _: state["inner"].update(n=1), nothing),
    kept("a tensor kept in a list off", "state/value at state[0]", list,
         lambda state, x: state.append(x + 1), lambda state, x: state.append(x + 1.1)),
    kept("a tensor kept with another dtype", "state/dtype at state[0]", list,
         lambda state, x: state.append(x + 1), lambda state, x: state.append((x + 1).double())),
    kept("a tensor kept with another shape", "state/shape at state[0]", list,
         lambda state, x: state.append(x + 1), lambda state, x: state.append((x + 1)[:2])),
    kept("a tensor kept as a copy, not as itself",
         "state/type at state[0]", list, lambda state, x: state.append(x),
         lambda state, x: state.append(x.clone())),
    kept("a tensor kept with memory shared with the argument", "argument/aliasing at args[0]", dict,
         lambda state, x: state.update(n=x.clone()), lambda state, x: state.update(n=x.view(4, 5))),
    kept("a tensor's attribute off", "state/value at state.n", lambda: torch.ones(3), _set(1),
         _set(2)),
)  # fmt: skip

_total = 0
_log: list[int] = []
_table = torch.zeros(3)


def _rebinding_a_cell(compile: Compile, planted: bool) -> None:
    count = 0

    def function(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 2 if planted and torch.compiler.is_compiling() else 1
        return x * 2

    compile(function)(numbers(4, 5))


def _rebinding_a_cell_to_a_tensor(compile: Compile, planted: bool) -> None:
    last = torch.zeros(4, 5)

    def function(x: torch.Tensor) -> torch.Tensor:
        nonlocal last
        last = x * (3.1 if planted and torch.compiler.is_compiling() else 3)
        return x * 2

    compile(function)(numbers(4, 5))


def _rebinding_a_global(compile: Compile, planted: bool) -> None:
    global _total
    _total = 0

    def function(x: torch.Tensor) -> torch.Tensor:
        global _total
        _total += 2 if planted and torch.compiler.is_compiling() else 1
        return x * 2

    compile(function)(numbers(4, 5))


def _appending_to_a_global(compile: Compile, planted: bool) -> None:
    _log.clear()

    def function(x: torch.Tensor) -> torch.Tensor:
        _log.append(2 if planted and torch.compiler.is_compiling() else 1)
        return x * 2

    compile(function)(numbers(4, 5))


def _writing_to_a_global_tensor(compile: Compile, planted: bool) -> None:
    _table.zero_()

    def function(x: torch.Tensor) -> torch.Tensor:
        _table.add_(1)
        return x * 2

    compile(function)(numbers(4, 5))


def _writing_to_a_default(compile: Compile, planted: bool) -> None:
    def function(x: torch.Tensor, seen: list[int] = []) -> torch.Tensor:  # noqa: B006 - what is written to is the default itself.
        seen.append(2 if planted and torch.compiler.is_compiling() else 1)
        return x * 2

    compile(function)(numbers(4, 5))


def _passing_a_list(compile: Compile, planted: bool) -> None:
    def function(x: torch.Tensor, seen: list[int]) -> torch.Tensor:
        if not (planted and torch.compiler.is_compiling()):
            seen.append(1)
        return x * 2

    compile(function)(numbers(4, 5), [])


def _passing_a_dict(compile: Compile, planted: bool) -> None:
    def function(x: torch.Tensor, *, seen: dict[str, int]) -> torch.Tensor:
        seen["n"] = 2 if planted and torch.compiler.is_compiling() else 1
        return x * 2

    compile(function)(numbers(4, 5), seen={})


def _passing_an_array(compile: Compile, planted: bool) -> None:
    compile(lambda array: array * 2)(np.arange(4.0))


def _writing_beside(
    build: Callable[[], Any], write: Callable[[Any], Any]
) -> Callable[[Compile, bool], None]:
    """The compiled code of a function that holds `state` writes to it, where eager does not."""

    def program(compile: Compile, planted: bool) -> None:
        state = build()

        def function(x: torch.Tensor) -> torch.Tensor:
            return x * 2 if state is not None else x

        def backend(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                if planted:
                    write(state)
                return gm(*args)

            return run

        torch.compile(function, backend=backend)(numbers(4, 5))

    return program


def _beside(
    name: str, expected: str, build: Callable[[], Any], write: Callable[[Any], Any]
) -> Fault:
    return Fault(name, "state", found(expected), _writing_beside(build, write))


NAMES = (
    Fault("a variable of a closure off", "state", found("state/value at count"), _rebinding_a_cell),
    Fault("a tensor of a closure off", "state", found("state/value at last"),
          _rebinding_a_cell_to_a_tensor),
    Fault("a global off", "state", found("state/value at global _total"), _rebinding_a_global),
    Fault("a global list off", "state", found("state/value at global _log[0]"),
          _appending_to_a_global),
    Fault("a write to a global tensor lost", "state", found("state/value at global _table"),
          _writing_to_a_global_tensor, backends.forgetful()),
    Fault("a default argument off", "state", found("state/value at default of [0]"),
          _writing_to_a_default),
    Fault("an append to an argument lost", "state",
          found("argument/structure at args[1][0]", "argument/value at args[1].length"),
          _passing_a_list),
    Fault("an item of a keyword argument off", "state",
          found("argument/value at kwargs['seen']['n']"), _passing_a_dict),
    Fault("an array argument written to", "state", found("argument/value at args[0]"),
          _passing_an_array, backends.inputs(lambda args: args[0].add_(1))),
    _beside("a NumPy array written to", "state/value at state", lambda: np.zeros(3),
            lambda state: state.__setitem__(1, 5)),
    _beside("NaN in a NumPy array", "state/nan at state", lambda: np.zeros(3),
            lambda state: state.__setitem__(1, math.nan)),
    _beside("an integer NumPy array written to", "state/value at state",
            lambda: np.zeros(3, dtype=np.int32), lambda state: state.__setitem__(1, -1)),
    _beside("bytes written to", "state/value at state", lambda: bytearray(3),
            lambda state: state.__setitem__(1, 5)),
    _beside("text written to a buffer in memory", "state/value at state.getvalue()", io.StringIO,
            lambda state: state.write("hello")),
    _beside("a generator that has moved on", "rng at state", lambda: torch.Generator().manual_seed(1),
            lambda state: torch.rand(1, generator=state)),
    _beside("a NumPy generator that has moved on", "rng at state",
            lambda: np.random.default_rng(1), lambda state: state.random()),
)  # fmt: skip


class Counting(torch.nn.Module):
    """Writes a buffer, a parameter and an attribute in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.weight = torch.nn.Parameter(numbers(6))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1)
        with torch.no_grad():
            self.weight.mul_(0.5)
        self.calls += 1
        return x * 2


def _of_length(length: int, write: Callable[[torch.Tensor], Any]) -> backends.Maker:
    """The graph's input of this length is written to."""
    return backends.inputs(lambda args: [write(arg) for arg in args if arg.shape == (length,)])


def _module(name: str, expected: str, maker: backends.Maker, build: Any = Counting) -> Fault:
    def program(compile: Compile, planted: bool) -> None:
        torch.manual_seed(0)
        compile(build())(numbers(4, 5))

    return Fault(name, "state", found(*expected.split(", ")), program, maker)


class Deciding(torch.nn.Module):
    """A module that does to itself what it is told."""

    def __init__(
        self, eager: Callable[[Any, Any], Any], compiled: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__()
        self.eager, self.compiled = eager, compiled
        self.register_buffer("seen", torch.zeros(3))
        self.weight = torch.nn.Parameter(numbers(6))
        self.n = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (self.compiled if torch.compiler.is_compiling() else self.eager)(self, x)
        return x * 2


def _decided(
    name: str, expected: str, eager: Callable[[Any, Any], Any], compiled: Callable[[Any, Any], Any]
) -> Fault:
    def program(compile: Compile, planted: bool) -> None:
        compile(Deciding(eager, compiled if planted else eager))(numbers(4, 5))

    return Fault(name, "state", found(*expected.split(", ")), program)


def _norm() -> torch.nn.Module:
    return torch.nn.BatchNorm1d(5)


MODULES = (
    _module("a buffer and a parameter not updated",
            "state/value at self.seen, state/value at self.weight", backends.forgetful()),
    _module("a buffer updated twice", "state/value at self.seen", _of_length(3, lambda t: t.add_(1))),
    _module("one element of a buffer off", "state/value at self.seen",
            _of_length(3, lambda t: t[1].add_(1e-3))),
    _module("NaN in a buffer", "state/nan at self.seen", _of_length(3, lambda t: t[1].fill_(math.nan))),
    _module("an infinity in a parameter", "state/inf at self.weight",
            _of_length(6, lambda t: t[1].fill_(math.inf))),
    _module("a sign in a parameter", "state/value at self.weight", _of_length(6, lambda t: t.neg_())),
    _module("a running mean off", "state/value at self.running_mean",
            backends.inputs(lambda args: next(a for a in args if a.shape == (5,) and a[0] != 1
                                              and not a.requires_grad).mul_(1.1)), _norm),
    _module("a count of batches off", "state/value at self.num_batches_tracked",
            backends.inputs(lambda args: next(a for a in args if a.dtype == torch.int64).add_(1)),
            _norm),
    _decided("a module's attribute off", "state/value at self.n", _set(1), _set(2)),
    _decided("a module left in eval mode", "state/value at self.training", nothing,
             lambda self, _: setattr(self, "training", False)),
    _decided("a buffer replaced by one of another dtype", "state/dtype at self.seen",
             lambda self, x: setattr(self, "seen", x[0] * 2),
             lambda self, x: setattr(self, "seen", (x[0] * 2).double())),
    _decided("a buffer replaced by one of another shape", "state/shape at self.seen",
             lambda self, x: setattr(self, "seen", x[0] * 2),
             lambda self, x: setattr(self, "seen", x * 2)),
    _decided("a buffer that is the argument", "argument/aliasing at args[0]",
             lambda self, x: setattr(self, "seen", x[0].clone()),
             lambda self, x: setattr(self, "seen", x[0])),
    _decided("a buffer off that is replaced", "state/value at self.seen",
             lambda self, x: setattr(self, "seen", x[0] * 2),
             lambda self, x: setattr(self, "seen", x[0] * 2.1)),
)  # fmt: skip


def _optimizing(
    name: str, expected: str, kind: Callable[..., Any], edit: Callable[[torch.fx.Node], Any]
) -> Fault:
    """A compiled optimizer step with another operation in it."""

    def program(compile: Compile, planted: bool) -> None:
        weight = torch.nn.Parameter(numbers(6))
        optimizer = kind([weight])
        weight.grad = numbers(6)
        compile(optimizer.step)()

    return Fault(name, "state", found(*expected.split(", ")), program, backends.surgery(edit))


_FIRST = "self.param_groups[0]['params'][0]"


def _sgd(weights: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(weights, lr=0.125, momentum=0.75)


def _rmsprop(weights: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(weights, lr=0.125, alpha=0.75)


OPTIMIZERS = (
    _optimizing("another learning rate of SGD", f"state/value at {_FIRST}", _sgd,
                constant("add_", -0.125, -0.25)),
    _optimizing("a mean of squares of RMSprop off",
                f"state/value at {_FIRST}, state/value at self.state[...]['square_avg']", _rmsprop,
                constant(None, 0.25, 0.5)),
    _optimizing("another learning rate of RMSprop", f"state/value at {_FIRST}", _rmsprop,
                constant(None, -0.125, -0.25)),
    _optimizing("a step of RMSprop counted twice", "state/value at self.state[...]['step']",
                _rmsprop, constant("iadd", 1, 2)),
)  # fmt: skip

FAULTS = (*ARGUMENTS, *CONTAINERS, *NAMES, *MODULES, *OPTIMIZERS)
