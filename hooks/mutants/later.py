"""Faults that the first calls do not show, or that only some calls of a program show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from mutants import backends
from mutants.backward import X, leaves, training, waves
from mutants.fault import Compile, Fault, calling, found
from mutants.forward import numbers, once, set_to, times
from mutants.state import Counting

_SINCE = (2, 3, 4, 8, 16, 64)
"""Numbers of calls that the audit checks, after the first."""


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def since(
    number: int,
    name: str,
    expected: Iterable[str],
    maker: backends.Maker,
    function: Callable[..., Any] = _double,
    calls: int | None = None,
) -> Fault:
    """The fault starts at a call of this number."""
    program = calling(function, once(numbers(4, 5)), calls or number)
    return Fault(f"{name} from call {number}", "later call", found(*expected), program, maker)


def trained(number: int, name: str, expected: str, maker: backends.Maker) -> Fault:
    program = training(lambda: waves, leaves(numbers(4, 5)), times=number)
    return Fault(
        f"{name} from call {number}", "later call", found(f"{expected} at {X}"), program, maker
    )


def _stale() -> backends.Backend:
    """Gives the results of the first call for ever."""
    first: list[Any] = []

    def around(gm: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not first:
            first.append([t.clone() for t in gm(*args)])
        return first[0]

    return backends.wrapped(around)()


def _growing(compile: Compile, planted: bool) -> None:
    compiled = compile(_double)
    for step in range(3):
        compiled(numbers(4, 5) + step)


CALLS = (
    *(since(n, "a wrong element", ["value"], backends.output(times(1.1), n)) for n in _SINCE),
    *(since(n, "a NaN", ["nan"], backends.output(set_to(math.nan), n)) for n in (2, 8)),
    *(since(n, "a wider dtype", ["dtype"], backends.output(torch.Tensor.double, n)) for n in (2, 4)),
    *(since(n, "another shape", ["shape"], backends.output(torch.flatten, n)) for n in (3, 8)),
    since(5, "a wrong element, which no check meets before call 8,", ["value"],
          backends.output(times(1.1), 5), calls=8),
    since(2, "an argument written to", ["argument/value at args[0]"],
          backends.inputs(lambda args: args[0].add_(1), 2)),
    since(4, "a write to an argument lost", ["argument/value at args[0]"], backends.forgetful(4),
          lambda x: x.mul_(2) * 0),
    since(3, "another switch left", ["state/mode at default dtype after the call"],
          backends.beside(lambda: torch.set_default_dtype(torch.float64), 3)),
    since(2, "a random number drawn", ["rng at random state of torch"],
          backends.beside(lambda: torch.rand(1), 2)),
    *(trained(n, "a wrong gradient", "grad/value", backends.gradient(times(1.1), n))
      for n in (2, 3, 4, 8)),
    trained(2, "a NaN in a gradient", "grad/nan", backends.gradient(set_to(math.nan), 2)),
    trained(3, "no gradient", "grad/value", backends.gradient(lambda grad: None, 3)),
    Fault("the result of the first call given again", "later call", found("value"), _growing, _stale),
)  # fmt: skip


def _counting(number: int, write: Callable[[torch.Tensor], Any]) -> backends.Maker:
    return backends.inputs(lambda args: [write(a) for a in args if a.shape == (3,)], number)


def _calling_a_module(compile: Compile, planted: bool) -> None:
    compiled = compile(Counting())
    for _ in range(4):
        compiled(numbers(4, 5))


def _branch(
    name: str,
    expected: str,
    wrong: Callable[[torch.Tensor], bool],
    calls: Callable[[Callable[..., Any]], Any],
) -> Fault:
    """Compiled code is wrong for some calls: each kind of call has code of its own."""

    def program(compile: Compile, planted: bool) -> None:
        def function(x: torch.Tensor) -> torch.Tensor:
            if planted and torch.compiler.is_compiling() and wrong(x):
                return x * 3
            return x * 2

        torch.manual_seed(0)
        calls(compile(function))

    return Fault(name, "later call", found(expected), program)


def _each(*makes: Callable[[], torch.Tensor]) -> Callable[[Callable[..., Any]], Any]:
    return lambda compiled: [compiled(make()) for make in makes]


def _then_under(context: Callable[[], Any]) -> Callable[[Callable[..., Any]], Any]:
    def calls(compiled: Callable[..., Any]) -> None:
        compiled(numbers(4, 5).requires_grad_())
        with context():
            compiled(numbers(4, 5).requires_grad_())

    return calls


def _plain() -> torch.Tensor:
    return numbers(4, 5)


class Modal(torch.nn.Module):
    """Compiled code is wrong in eval mode."""

    def __init__(self, planted: bool) -> None:
        super().__init__()
        self.planted = planted

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.planted and torch.compiler.is_compiling() and not self.training:
            return x * 3
        return x * 2


def _training_then_eval(compile: Compile, planted: bool) -> None:
    model = Modal(planted)
    compiled = compile(model)
    compiled(numbers(4, 5))
    model.eval()
    compiled(numbers(4, 5))


KINDS = (
    Fault("a buffer off from call 3", "later call", found("state/value at self.seen"),
          _calling_a_module, _counting(3, lambda t: t.add_(1))),
    Fault("NaN in a buffer from call 2", "later call", found("state/nan at self.seen"),
          _calling_a_module, _counting(2, lambda t: t[0].fill_(math.nan))),
    _branch("wrong for a second shape", "value", lambda x: x.shape[0] == 3,
            _each(_plain, lambda: numbers(3, 5))),
    _branch("wrong for a batch of one", "value", lambda x: x.shape[0] == 1,
            _each(_plain, lambda: numbers(3, 5), lambda: numbers(1, 5))),
    _branch("wrong for another number of dimensions", "value", lambda x: x.ndim == 3,
            _each(_plain, lambda: numbers(2, 2, 5))),
    _branch("wrong for another dtype", "value", lambda x: x.dtype == torch.float64,
            _each(_plain, lambda: numbers(4, 5).double())),
    _branch("wrong for integers", "value", lambda x: x.dtype == torch.int64,
            _each(_plain, lambda: torch.arange(4))),
    _branch("wrong for other strides", "value", lambda x: not x.is_contiguous(),
            _each(_plain, lambda: numbers(5, 4).t())),
    _branch("wrong for what wants a gradient", "value", lambda x: x.requires_grad,
            _each(_plain, lambda: numbers(4, 5).requires_grad_())),
    _branch("wrong under no_grad", "value", lambda x: not torch.is_grad_enabled(),
            _then_under(torch.no_grad)),
    _branch("wrong in inference mode", "value", lambda x: not torch.is_grad_enabled(),
            _then_under(torch.inference_mode)),
    _branch("wrong under autocast", "value", lambda x: torch.is_autocast_enabled("cpu"),
            _then_under(lambda: torch.autocast("cpu", torch.bfloat16))),
    Fault("wrong in eval mode", "later call", found("value"), _training_then_eval),
)  # fmt: skip

FAULTS = (*CALLS, *KINDS)
