"""Faults in the gradients: results are right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from mutants import backends
from mutants.backends import constant, dropped, replaced
from mutants.fault import Compile, Fault, Make, found
from mutants.forward import element, numbers, plus, set_to, times

F = torch.nn.functional

Drive = Callable[[Any], Any]
"""Goes backward from a result."""


def leaves(*tensors: torch.Tensor) -> Make:
    """Tensors of one's own that want a gradient."""
    return lambda: tuple(tensor.clone().requires_grad_() for tensor in tensors)


_TABLE = numbers(4, 5)
_ONE = leaves(_TABLE)
_SQUARES = leaves(numbers(4, 4), numbers(4, 4) + 1)


def uneven(result: torch.Tensor) -> None:
    """Every element of the result gets a gradient of its own."""
    result.backward(numbers(*result.shape).to(result.dtype))


def training(
    function: Callable[[], Any], make: Make, drive: Drive = uneven, times: int = 1
) -> Callable[[Compile, bool], None]:
    """A program that calls what `function` makes, and goes backward after each call."""

    def program(compile: Compile, planted: bool) -> None:
        compiled = compile(function())
        for _ in range(times):
            drive(compiled(*make()))

    return program


def waves(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def mixed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sin() * y


X = "gradient of args[0]"
Y = "gradient of args[1]"


def _at(name: str, *paths: str) -> frozenset[str]:
    return found(*(f"grad/{name} at {path}" for path in paths or (X,)))


def sent(
    name: str,
    expected: frozenset[str],
    change: Callable[[torch.Tensor], Any],
    x: torch.Tensor = _TABLE,
    function: Callable[..., Any] = waves,
) -> Fault:
    """The gradient that an input gets becomes another."""
    program = training(lambda: function, leaves(x))
    return Fault(name, "backward", expected, program, backends.gradient(change))


def edited(
    name: str,
    expected: frozenset[str],
    function: Callable[..., Any],
    edit: Callable[[torch.fx.Node], Any],
    make: Make = _ONE,
) -> Fault:
    """An operation becomes one that gives the same, and another gradient."""
    program = training(lambda: function, make)
    return Fault(name, "backward", expected, program, backends.surgery(edit))


def of_aot(
    name: str,
    expected: frozenset[str],
    maker: backends.Maker,
    function: Callable[..., Any] = mixed,
    make: Make = _SQUARES,
) -> Fault:
    """The backward graph that AOTAutograd makes is spoiled."""
    program = training(lambda: function, make)
    return Fault(name, "backward", expected, program, maker, backends.right_backward)


VALUES = (
    *(
        sent(f"one element of a gradient in {dtype} 10 % too large", _at("value"), times(1.1),
             numbers(4, 5, dtype=dtype))
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    ),
    sent("one element of a complex gradient off", _at("value"), plus(0.1j),
         numbers(4, 5).to(torch.complex64)),
    sent("a sign flipped in one element", _at("value"), element(7, torch.neg)),
    sent("all signs of a gradient flipped", _at("value"), torch.neg),
    sent("a gradient twice as large", _at("value"), lambda grad: grad * 2),
    sent("a gradient of zeros", _at("value"), torch.zeros_like),
    sent("no gradient at all", _at("value"), lambda grad: None),
    sent("a gradient of ones", _at("value"), torch.ones_like),
    sent("all of a gradient 1e-5 too large", _at("value"), lambda grad: grad * (1 + 1e-5)),
    sent("a gradient of size 1e-8 with a wrong sign", _at("value"), torch.neg,
         function=lambda x: x.sin() * 1e-8),
    sent("a square gradient transposed", _at("value"), lambda grad: grad.t().contiguous(),
         numbers(4, 4)),
    sent("a gradient rolled by one", _at("value"), lambda grad: grad.roll(1, 0)),
    sent("the mean where there is a sum", _at("value"), lambda grad: grad / 20,
         torch.tensor(1.5), lambda x: x.expand(4, 5) * 2),
    sent("one of a hundred thousand", _at("value"), times(1.01, 76_543), numbers(100_000)),
    sent("a NaN in a gradient", _at("nan"), set_to(math.nan)),
    sent("all of a gradient NaN", _at("nan"), lambda grad: grad * math.nan),
    sent("a NaN in a gradient in bfloat16", _at("nan"), set_to(math.nan),
         numbers(4, 5, dtype=torch.bfloat16)),
    sent("a NaN lost from a gradient", _at("nan"), torch.nan_to_num, set_to(0.0)(numbers(4, 5)),
         lambda x: torch.where(x > 0, x.sqrt(), 1.0)),
    sent("an infinity in a gradient", _at("inf"), set_to(math.inf)),
    sent("an infinity lost from a gradient", _at("inf"), torch.nan_to_num,
         set_to(0.0)(numbers(4, 5)), torch.sqrt),
    sent("an infinite gradient of the other sign", _at("inf"), torch.neg,
         set_to(0.0)(numbers(4, 5)) * 0, torch.sqrt),
)  # fmt: skip


def _second(change: Callable[[torch.Tensor], Any]) -> backends.Maker:
    return backends.gradients(lambda grads: [grads[0], change(grads[1])])


def _linear() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(5, 5)


def _embedding() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Embedding(10, 3)


def _normed() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.BatchNorm1d(5))


def _holding() -> Callable[..., Any]:
    weight = torch.nn.Parameter(numbers(5))
    return lambda x: x.sin() * weight


def _by_keyword(x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
    return x.sin() * scale


def _of_module(
    name: str,
    expected: frozenset[str],
    shape: tuple[int, ...],
    build: Callable[[], Any] = _linear,
    make: Make = lambda: (numbers(4, 5),),
) -> Fault:
    """The gradient of the parameter of this shape is off."""

    def change(grads: list[Any]) -> list[Any]:
        return [grad * 1.01 if grad.shape == shape else grad for grad in grads]

    return Fault(name, "backward", expected, training(build, make), backends.gradients(change))


def _calling_by_keyword(compile: Compile, planted: bool) -> None:
    x, scale = numbers(4, 5), numbers(5).requires_grad_()
    uneven(compile(_by_keyword)(x, scale=scale))


def _calling_with_a_list(compile: Compile, planted: bool) -> None:
    x, y = leaves(numbers(4, 5), numbers(4, 5))()
    uneven(compile(lambda pair: pair[0].sin() * pair[1])([x, y]))


def _calling_on_an_activation(compile: Compile, planted: bool) -> None:
    x = numbers(4, 5).requires_grad_()
    uneven(compile(waves)(x * 3))


def _asking_for_a_gradient(compile: Compile, planted: bool) -> None:
    x = numbers(4, 5).requires_grad_()
    torch.autograd.grad(compile(waves)(x).sum(), x)


def _writing_to_an_activation(compile: Compile, planted: bool) -> None:
    x = numbers(4, 5).requires_grad_()
    h = x * 3
    uneven(compile(lambda h: h.mul_(2).sin())(h))


PLACES = (
    Fault("the second of two gradients", "backward", _at("value", Y),
          training(lambda: mixed, leaves(numbers(4, 5), numbers(4, 5))), _second(times(1.1))),
    Fault("two gradients exchanged", "backward", _at("value", X, Y),
          training(lambda: mixed, leaves(numbers(4, 5), numbers(4, 5))),
          backends.gradients(lambda grads: grads[::-1])),
    _of_module("the gradient of a weight", _at("value", "gradient of self.weight"), (5, 5)),
    _of_module("the gradient of a bias", _at("value", "gradient of self.bias"), (5,)),
    _of_module("the gradient of an embedding", _at("value", "gradient of self.weight"), (10, 3),
               _embedding, lambda: (torch.arange(6),)),
    _of_module("the gradient of a weight before batch norm",
               _at("value", "gradient of self.0.weight"), (5, 5), _normed),
    _of_module("the gradient of a tensor in a closure", _at("value", "gradient of weight"), (5,),
               _holding),
    Fault("the gradient of a keyword argument", "backward",
          _at("value", "gradient of kwargs['scale']"), _calling_by_keyword,
          backends.gradient(times(1.1, 2))),
    Fault("the gradient of a list's item", "backward", _at("value", "gradient of args[0][1]"),
          _calling_with_a_list, _second(times(1.1))),
    Fault("the gradient of an activation", "backward", _at("value"), _calling_on_an_activation,
          backends.gradient(times(1.1))),
    Fault("the gradient of an activation that is written to", "backward",
          _at("value", X, f"{X} from the other results"),
          _writing_to_an_activation,
          backends.surgery(replaced("sin", lambda h: h.sin() + h * 0.1 - h.detach() * 0.1))),
    Fault("a gradient asked for by autograd.grad", "backward", _at("value"),
          _asking_for_a_gradient, backends.gradient(times(1.1))),
)  # fmt: skip


def _straight(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """ReLU whose gradient passes where nothing should."""
    return x + (F.relu(x) - x).detach()


def _blocked(x: torch.Tensor, y: Any) -> torch.Tensor:
    return x * y.detach()


_HALVES = leaves(numbers(4, 5) - 1)

OPERATIONS = (
    edited("a gradient that stops at a factor", _at("value"), lambda x: torch.mul(x, x),
           replaced("mul", _blocked)),
    edited("a gradient where detach should stop it", _at("value"), lambda x: x * x.detach(), dropped("detach")),
    edited("relu with the gradient of the identity", _at("value"), lambda x: F.relu(x),
           replaced("relu", _straight), _HALVES),
    edited("the gradient of abs off by a half", _at("value"), lambda x: x.abs() + x,
           replaced("abs", lambda x: x.abs() + (x * 0.5 - x.detach() * 0.5))),
    edited("the gradient of a maximum given to the first of equals", _at("value"),
           lambda x: torch.amax(x, 1), replaced("amax", lambda x, d: x.max(d).values),
           leaves(torch.ones(4, 5))),
    edited("another slope in the gradient of leaky relu", _at("value"), lambda x: F.leaky_relu(x, 0.0),
           replaced("leaky_relu", lambda x, *_, **__: F.relu(x) + (x - x.detach()) * 0.01),
           _HALVES),
    of_aot("one element of a backward graph's output", _at("value"),
           backends.backward_graph(lambda outs: outs.__setitem__(0, times(1.1)(outs[0])))),
    of_aot("a NaN in a backward graph's output", _at("nan"),
           backends.backward_graph(lambda outs: outs.__setitem__(0, set_to(math.nan)(outs[0])))),
    of_aot("an infinity in a backward graph's output", _at("inf", Y),
           backends.backward_graph(lambda outs: outs.__setitem__(1, set_to(math.inf)(outs[1])))),
    of_aot("a backward graph's output missing", _at("value"),
           backends.backward_graph(lambda outs: outs.__setitem__(0, None))),
    of_aot("two outputs of a backward graph exchanged", _at("value", X, Y),
           backends.backward_graph(list.reverse)),
    of_aot("the backward graph ignores what arrives", _at("value", X, Y),
           backends.backward_graph(
               lambda outs: outs.__setitem__(slice(None), [torch.ones_like(o) for o in outs]))),
    of_aot("cos is sin in the backward graph", _at("value"),
           backends.backward_surgery(replaced("cos", torch.ops.aten.sin.default))),
    of_aot("a minus left out of the backward graph", _at("value"),
           backends.backward_surgery(dropped("neg")), torch.cos, leaves(numbers(4, 5))),
    of_aot("another constant in the backward graph", _at("value"),
           backends.backward_surgery(constant("mul", 3, 4)), lambda x: x * 3,
           leaves(numbers(4, 5))),
)  # fmt: skip


def _in_steps(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.sin()
    return y, y * 3


def _from_both(results: tuple[torch.Tensor, torch.Tensor]) -> None:
    (results[0].sum() + results[1].sum()).backward()


def _hooked(compile: Compile, planted: bool) -> None:
    seen: dict[str, int] = {"n": 0}

    def count(grad: torch.Tensor) -> None:
        seen["n"] += 1

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        if planted and not torch.compiler.is_compiling():
            y.register_hook(count)
        return y * 2

    uneven(compile(function)(numbers(4, 5).requires_grad_()))


AROUND = (
    Fault("the gradient that a result gets from another result", "backward",
          _at("value", X, "gradient of result[0] from the other results"),
          training(lambda: _in_steps, leaves(numbers(4, 5)), _from_both),
          backends.surgery(replaced("mul", lambda y, by: y * by + (y - y.detach())))),
    Fault("a hook that does not fire", "backward", found("state/value at seen['n'], in the backward pass"),
          _hooked),
)  # fmt: skip

FAULTS = (*VALUES, *PLACES, *OPERATIONS, *AROUND)
