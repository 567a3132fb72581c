"""Backends that plant a fault in what Dynamo captured. None of them compiles anything.

A fault starts at a run of the compiled code: `since` 1 is the first. Each `Maker` makes a backend
with counters of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

Backend = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]
Maker = Callable[[], Backend]


def right() -> Backend:
    """Runs the graph as it was captured."""
    return lambda gm, _: gm.forward


def wrapped(around: Callable[[Callable[..., Any], tuple[Any, ...]], Any], since: int = 1) -> Maker:
    """`around(graph, inputs)` stands for each run of the graph from number `since`."""

    def maker() -> Backend:
        runs = itertools.count(1)

        def backend(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
            return lambda *args: gm(*args) if next(runs) < since else around(gm, args)

        return backend

    return maker


def outputs(change: Callable[[list[Any]], Any], since: int = 1) -> Maker:
    """`change` spoils the list of the graph's outputs."""

    def around(gm: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        given = list(gm(*args))
        change(given)
        return given

    return wrapped(around, since)


def output(change: Callable[[torch.Tensor], Any], since: int = 1) -> Maker:
    """`change` gives what stands in the place of the graph's first output."""

    def first(given: list[Any]) -> None:
        given[0] = change(given[0])

    return outputs(first, since)


def inputs(change: Callable[[tuple[Any, ...]], Any], since: int = 1) -> Maker:
    """`change` spoils the graph's inputs in place, once it has run."""

    def around(gm: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        given = gm(*args)
        with torch.no_grad():
            change(args)
        return given

    return wrapped(around, since)


def beside(effect: Callable[[], Any], since: int = 1) -> Maker:
    """The graph runs, and something else happens."""
    return inputs(lambda _: effect(), since)


def forgetful(since: int = 1) -> Maker:
    """What the graph writes to its inputs is lost."""
    return wrapped(lambda gm, args: gm(*(arg.clone() for arg in args)), since)


def surgery(edit: Callable[[torch.fx.Node], Any]) -> Maker:
    """`edit` is shown every operation of the captured graph, and changes what it likes."""

    def maker() -> Backend:
        def backend(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
            operate(gm, edit)
            return gm.forward

        return backend

    return maker


def operate(gm: torch.fx.GraphModule, edit: Callable[[torch.fx.Node], Any]) -> None:
    before = gm.code
    for node in list(gm.graph.nodes):
        if node.op in ("call_function", "call_method"):
            edit(node)
    gm.recompile()
    if gm.code == before:
        raise LookupError(f"no operation was changed in {before}")


def named(node: torch.fx.Node, name: str) -> bool:
    """Whether the operation is called `name`, whichever way the program called it."""
    target = node.target if isinstance(node.target, str) else node.target.__name__
    return target.partition(".")[0] == name


def replaced(name: str, target: Any) -> Callable[[torch.fx.Node], Any]:
    """An edit: another operation in the place of `name`."""

    def edit(node: torch.fx.Node) -> None:
        if named(node, name):
            node.op, node.target = "call_function", target

    return edit


def constant(name: str | None, old: Any, new: Any) -> Callable[[torch.fx.Node], Any]:
    """An edit: `name`, or any operation, is called with `new` where it was called with `old`."""

    def swap(value: Any) -> Any:
        return new if type(value) is type(old) and value == old else value

    def edit(node: torch.fx.Node) -> None:
        if name is None or named(node, name):
            node.args = torch.fx.node.map_aggregate(node.args, swap)
            node.kwargs = torch.fx.node.map_aggregate(node.kwargs, swap)

    return edit


def dropped(name: str) -> Callable[[torch.fx.Node], Any]:
    """An edit: the operation is left out, and its first operand stands for its result."""

    def edit(node: torch.fx.Node) -> None:
        if named(node, name):
            node.replace_all_uses_with(node.args[0])
            node.graph.erase_node(node)

    return edit


def gradient(change: Callable[[torch.Tensor], Any], since: int = 1) -> Maker:
    """`change` spoils what the graph sends to its first differentiable input."""
    return gradients(lambda grads: [change(grads[0]), *grads[1:]], since)


def gradients(change: Callable[[list[Any]], list[Any]], since: int = 1) -> Maker:
    """`change` gives what the graph sends to its differentiable inputs instead."""

    def around(gm: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        needing = [i for i, arg in enumerate(args) if _needs_gradient(arg)]

        class Spoil(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: torch.Tensor) -> Any:
                return tuple(tensor.view_as(tensor) for tensor in tensors)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return tuple(change([None if g is None else g.clone() for g in grads]))

        passed = list(args)
        for i, tensor in zip(needing, Spoil.apply(*(args[i] for i in needing)), strict=True):
            passed[i] = tensor
        return gm(*passed)

    return wrapped(around, since)


def _needs_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def right_backward() -> Backend:
    """As `right`, with the backward graph that AOTAutograd makes."""
    return aot_autograd(fw_compiler=_as_captured)


def backward_graph(change: Callable[[list[Any]], Any], since: int = 1) -> Maker:
    """AOTAutograd makes the backward graph, and `change` spoils the list of its outputs."""

    def maker() -> Backend:
        runs = itertools.count(1)

        def compiler(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
            def run(*args: Any) -> list[Any]:
                given = list(gm(*args))
                if next(runs) >= since:
                    change(given)
                return given

            return make_boxed_func(run)

        return aot_autograd(fw_compiler=_as_captured, bw_compiler=compiler)

    return maker


def backward_surgery(edit: Callable[[torch.fx.Node], Any]) -> Maker:
    """`edit` is shown every operation of the backward graph that AOTAutograd makes."""

    def compiler(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
        operate(gm, edit)
        return make_boxed_func(gm.forward)

    return lambda: aot_autograd(fw_compiler=_as_captured, bw_compiler=compiler)


def _as_captured(gm: torch.fx.GraphModule, _: list[Any]) -> Callable[..., Any]:
    return make_boxed_func(gm.forward)
