"""Faults in what a call gives, or raises: the first call is wrong already."""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from mutants import backends
from mutants.backends import constant, dropped, replaced
from mutants.fault import Compile, Fault, Make, branching, calling, found

F = torch.nn.functional


def numbers(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
    """Different numbers between 0.5 and 1.5 times `scale`."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(shape, generator=generator).add_(0.5).mul_(scale).to(dtype)


def once(*args: Any) -> Make:
    """Arguments of a function: copies of these."""
    return lambda: tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)


SOME = once(numbers(4, 5))
"""The argument of most functions."""


def element(index: int, change: Callable[[Any], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    """One element of a tensor changes."""

    def spoil(tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.detach().reshape(-1).clone()
        flat[index] = change(flat[index])
        return flat.reshape(tensor.shape)

    return spoil


def set_to(value: Any, index: int = 7) -> Callable[[torch.Tensor], torch.Tensor]:
    return element(index, lambda _: value)


def times(factor: float, index: int = 7) -> Callable[[torch.Tensor], torch.Tensor]:
    return element(index, lambda value: value * factor)


def plus(amount: Any, index: int = 7) -> Callable[[torch.Tensor], torch.Tensor]:
    return element(index, lambda value: value + amount)


def spoiled(
    name: str,
    expected: str,
    change: Callable[[torch.Tensor], Any],
    make: Make = SOME,
    function: Callable[..., Any] = lambda x: x * 2,
) -> Fault:
    """The first output of the graph becomes another."""
    program = calling(function, make)
    return Fault(name, "forward", found(expected), program, backends.output(change))


def edited(
    name: str,
    expected: str,
    function: Callable[..., Any],
    edit: Callable[[torch.fx.Node], Any],
    make: Make = SOME,
) -> Fault:
    """An operation of the graph becomes another."""
    return Fault(
        name, "forward", found(*expected.split(", ")), calling(function, make),
        backends.surgery(edit),
    )  # fmt: skip


def branched(
    name: str,
    expected: str,
    eager: Callable[..., Any],
    compiled: Callable[..., Any],
    make: Make = SOME,
) -> Fault:
    """Compiled code takes another branch."""
    return Fault(
        name, "forward", found(*expected.split(", ")), branching(eager, compiled, make)
    )  # fmt: skip


def beside(name: str, expected: str, effect: Callable[[], Any]) -> Fault:
    """Something happens beside the graph."""
    program = calling(lambda x: x * 2, once(numbers(4, 5)))
    return Fault(name, "forward", found(expected), program, backends.beside(effect))


_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _integers(dtype: torch.dtype) -> Make:
    return once(torch.arange(20).to(dtype))


def _code(tensor: torch.Tensor) -> torch.Tensor:
    """Three units in the last place of one number of 8 bits."""
    return plus(3)(tensor.view(torch.uint8)).view(tensor.dtype)


_MANY = torch.arange(1_000_000)

VALUES = (
    *(
        spoiled(
            f"one element of {dtype} 10 % too large", "value", times(1.1),
            once(numbers(4, 5, dtype=dtype)),
        )
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    ),
    spoiled(
        "one element of float8 three codes off", "value", _code,
        once(numbers(4, 5)), lambda x: (x * 2).to(torch.float8_e4m3fn),
    ),
    spoiled(
        "real part of one complex element", "value", plus(0.5),
        once(numbers(4, 5).to(torch.complex64)),
    ),
    spoiled(
        "imaginary part of one complex element", "value", plus(1e-3j),
        once(numbers(4, 5).to(torch.complex64) * (1 + 1j)),
    ),
    spoiled("one element 40 ULP off", "value", times(1 + 40 * 2**-23), once(torch.ones(4, 5))),
    spoiled("one element of size 1e-8 off", "value", times(1.1), once(numbers(4, 5, scale=1e-8))),
    spoiled("one element of size 1e30 off", "value", times(1.1), once(numbers(4, 5, scale=1e30))),
    spoiled("a denormal number flushed to 0", "value", set_to(0.0), once(numbers(4, 5, scale=1e-39))),
    spoiled("the smallest of the numbers lost", "value", set_to(0.0), once(numbers(4, 5, scale=1e-30))),
    spoiled("one of a million elements", "value", times(1.01, 765_432), once(_MANY.float() + 1)),
    spoiled("the last of a million integers", "value", plus(1, -1), once(_MANY)),
    spoiled(
        "one of a million booleans", "value", element(765_432, torch.logical_not), once(_MANY),
        lambda x: x > 7,
    ),
    *(spoiled(f"one element of {d} one too large", "value", plus(1), _integers(d)) for d in _INTEGERS),
    spoiled("-1 in an integer tensor", "value", set_to(-1), _integers(torch.int64)),
    spoiled("a sign lost in an integer tensor", "value", torch.abs, once(torch.arange(-9, 9))),
    spoiled(
        "integers that only an int64 tells apart", "value", plus(1),
        once(torch.full((20,), 2**61 + 1)),
    ),
    spoiled(
        "int8 saturates where it should overflow", "value", set_to(127),
        once(torch.full((20,), 100, dtype=torch.int8)),
    ),
    spoiled(
        "int32 overflow kept in int64", "dtype", lambda t: torch.full((20,), 2**32),
        once(torch.full((20,), 2**31 - 1, dtype=torch.int32)), lambda x: x + 1,
    ),
    spoiled("a flipped boolean", "value", element(7, torch.logical_not), function=lambda x: x > 1),
    spoiled("all elements 1e-5 too large", "value", lambda t: t * (1 + 1e-5)),
    spoiled("all signs flipped", "value", torch.neg),
    spoiled("all zeros", "value", torch.zeros_like),
    spoiled("all ones", "value", torch.ones_like),
    spoiled("one row twice", "value", lambda t: t[:1].expand(4, 5).clone()),
    spoiled("rows in another order", "value", lambda t: t.flip(0)),
    spoiled("columns rolled by one", "value", lambda t: t.roll(1, 1)),
    spoiled("a square transposed", "value", lambda t: t.t().contiguous(), once(numbers(4, 4))),
    spoiled("a 0-dim result off", "value", lambda t: t * 1.001, function=lambda x: x.sum()),
    spoiled(
        "the last column of an odd size unwritten", "value",
        lambda t: torch.cat([t[:, :-1], torch.zeros(4, 1)], 1), once(numbers(4, 17)),
    ),
    spoiled("+0 where there is a number", "value", set_to(0.0)),
    edited("sin is cos", "value", lambda x: x.sin(), replaced("sin", torch.cos)),
    edited("a sum is a mean", "value", lambda x: torch.sum(x, 1), replaced("sum", torch.mean)),
    edited("a maximum is a minimum", "value", torch.amax, replaced("amax", torch.amin)),
    edited("a product is a sum", "value", lambda x: x * 3, replaced("mul", torch.add)),
    edited("a constant is another", "value", lambda x: x * 3, constant("mul", 3, 4)),
    edited("relu left out", "value", lambda x: F.relu(x - 1), dropped("relu")),
    edited("clamp with another bound", "value", lambda x: x.clamp(max=1.0), constant("clamp", 1.0, 1.1)),
    edited("a cast left out", "dtype", lambda x: x.sin().to(torch.float16), dropped("to")),
    edited("integer division that rounds down", "value",
           lambda x: torch.div(x, 2, rounding_mode="trunc"),
           constant("div", "trunc", "floor"), once(torch.arange(-9, 9))),
    edited("a sort the other way round", "value at result[0], value at result[1]",
           lambda x: tuple(torch.sort(x, 1)), constant("sort", 1, 0)),
    edited("softmax over another dimension", "value", lambda x: torch.softmax(x, 1),
           constant("softmax", 1, 0)),
    edited("a comparison that includes the bound", "value", lambda x: torch.gt(x, 3),
           replaced("gt", torch.ge), once(torch.arange(9))),
    edited("gather from the neighbour", "value", lambda x: torch.roll(x, 1, 0), constant("roll", 1, 2)),
)  # fmt: skip

_INF, _NAN = math.inf, math.nan


def _with(value: float) -> Make:
    return once(set_to(value)(numbers(4, 5)))


SPECIAL = (
    spoiled("a NaN", "nan", set_to(_NAN)),
    spoiled("a NaN in float16", "nan", set_to(_NAN), once(numbers(4, 5, dtype=torch.float16))),
    spoiled("a NaN in bfloat16", "nan", set_to(_NAN), once(numbers(4, 5, dtype=torch.bfloat16))),
    spoiled("a NaN in float64", "nan", set_to(_NAN), once(numbers(4, 5, dtype=torch.float64))),
    spoiled("a NaN lost", "nan", torch.nan_to_num, _with(_NAN)),
    spoiled("a NaN in the neighbour's place", "nan", lambda t: t.roll(1, 1),
            once(set_to(_NAN)(torch.ones(4, 5)))),
    spoiled("all NaN", "nan", lambda t: torch.full_like(t, _NAN)),
    spoiled("NaN in an imaginary part", "nan", element(7, lambda z: complex(z.real, _NAN)),
            once(numbers(4, 5).to(torch.complex64))),
    spoiled("NaN where there is an infinity", "nan", set_to(_NAN), _with(_INF)),
    spoiled("an infinity where there is NaN", "nan", set_to(_INF), _with(_NAN)),
    spoiled("an infinity", "inf", set_to(_INF)),
    spoiled("an infinity of the other sign", "inf", set_to(-_INF), _with(_INF)),
    spoiled("an infinity saturated", "inf", set_to(torch.finfo(torch.float32).max), _with(_INF)),
    spoiled("an overflow lost in float16", "inf", set_to(65504.0),
            once(set_to(60000.0)(numbers(4, 5, dtype=torch.float16)))),
    spoiled("one NaN of a million", "nan", set_to(_NAN, 765_432), once(_MANY.float())),
)  # fmt: skip


def _image() -> torch.Tensor:
    return numbers(2, 3, 4, 5)


def _under_no_grad(function: Callable[..., Any]) -> Callable[[Compile, bool], None]:
    def program(compile: Compile, planted: bool) -> None:
        with torch.no_grad():
            calling(function, once(numbers(4, 5).requires_grad_()))(compile, planted)

    return program


_NEEDS = once(numbers(4, 5).requires_grad_())

METADATA = (
    spoiled("float32 widened to float64", "dtype", torch.Tensor.double),
    spoiled("float32 narrowed to bfloat16", "dtype", torch.Tensor.bfloat16),
    spoiled("float64 narrowed to float32", "dtype", torch.Tensor.float,
            once(numbers(4, 5, dtype=torch.float64))),
    spoiled("float16 is bfloat16", "dtype", torch.Tensor.bfloat16,
            once(numbers(4, 5, dtype=torch.float16))),
    spoiled("int64 narrowed to int32", "dtype", torch.Tensor.int, _integers(torch.int64)),
    spoiled("booleans are bytes", "dtype", lambda t: t.to(torch.uint8), function=lambda x: x > 1),
    spoiled("integers are floats", "dtype", torch.Tensor.float, _integers(torch.int64)),
    spoiled("complex64 widened", "dtype", lambda t: t.to(torch.complex128),
            once(numbers(4, 5).to(torch.complex64))),
    spoiled("the imaginary part dropped", "dtype", torch.real,
            once(numbers(4, 5).to(torch.complex64))),
    spoiled("flattened", "shape", torch.flatten),
    spoiled("a dimension of size 1 lost", "shape", torch.squeeze, once(numbers(4, 1))),
    spoiled("a dimension of size 1 added", "shape", lambda t: t.unsqueeze(0)),
    spoiled("one row missing", "shape", lambda t: t[:-1]),
    spoiled("one row too many", "shape", lambda t: torch.cat([t, t[:1]])),
    spoiled("nothing at all", "shape", lambda t: t[:0]),
    spoiled("a 0-dim result with a dimension", "shape", lambda t: t.reshape(1),
            function=lambda x: x.sum()),
    spoiled("a vector of one where there is a scalar", "shape", lambda t: t.reshape(()),
            once(numbers(1))),
    spoiled("an empty tensor of another shape", "shape", lambda t: t.reshape(3, 0),
            once(numbers(0, 3))),
    edited("keepdim forgotten", "shape", lambda x: torch.sum(x, 1, keepdim=True),
           constant("sum", True, False)),
    spoiled("stored by columns", "stride", lambda t: t.t().contiguous().t()),
    spoiled("stored by rows", "stride", lambda t: t.contiguous(), function=lambda x: x.t() * 1),
    spoiled("channels last", "stride", lambda t: t.to(memory_format=torch.channels_last), once(_image())),
    spoiled("channels first", "stride", torch.Tensor.contiguous,
            lambda: (_image().to(memory_format=torch.channels_last),)),
    spoiled("padded rows", "stride", lambda t: F.pad(t, (0, 3))[:, :5]),
    spoiled("expanded where there are copies", "stride", lambda t: t[:1].expand(4, 5),
            once(torch.ones(4, 5))),
    spoiled("on the meta device", "device", lambda t: t.to("meta")),
    spoiled("sparse where dense", "layout", torch.Tensor.to_sparse),
    spoiled("compressed rows where dense", "layout", torch.Tensor.to_sparse_csr),
    spoiled("in oneDNN's layout", "layout", torch.Tensor.to_mkldnn),
    spoiled("cut off from its history", "requires_grad", torch.Tensor.detach, _NEEDS),
    spoiled("a history that is not there", "requires_grad", lambda t: t.clone().requires_grad_()),
    Fault("a history in spite of no_grad", "forward", found("requires_grad"),
          _under_no_grad(lambda x: x * 2),
          backends.output(lambda t: t.clone().requires_grad_())),
    edited("detach left out", "requires_grad", lambda x: x.sin().detach(), dropped("detach"), _NEEDS),
)  # fmt: skip


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Answer:
    logits: Any
    loss: Any = None


class Plain:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def _answers(name: str, expected: str, eager: Any, compiled: Any) -> Fault:
    """A result with more in it than a tensor: `eager` and `compiled` make it of one."""
    return branched(name, expected, lambda x: eager(x.sin()), lambda x: compiled(x.sin()))


def _beside(name: str, expected: str, eager: Any, compiled: Any) -> Fault:
    """A value that stands beside a tensor in the result."""
    return _answers(name, f"{expected} at result[1]", lambda t: (t, eager), lambda t: (t, compiled))


RESULTS = (
    _answers("a list where there is a tuple", "type", lambda t: (t, t + 1), lambda t: [t, t + 1]),
    _answers("a tuple where there is a list", "type", lambda t: [t], lambda t: (t,)),
    _answers("a tuple where there is a named one", "type", lambda t: Pair(t, 1), lambda t: (t, 1)),
    _answers("a tuple of one where there is a tensor", "type", lambda t: t, lambda t: (t,)),
    _answers("a dict where there is an ordered one", "type",
             lambda t: collections.OrderedDict(a=t), lambda t: {"a": t}),
    _answers("a dict where there is a dataclass", "type", Answer, lambda t: {"logits": t}),
    _answers("None where there is a tensor", "type at result[1]", lambda t: (t, t + 1),
             lambda t: (t, None)),
    _answers("a tensor where there is None", "type at result[1]", lambda t: (t, None),
             lambda t: (t, t + 1)),
    _answers("a number where there is a tensor", "type at result[1]",
             lambda t: (t, torch.tensor(3)), lambda t: (t, 3)),
    _beside("a float where there is an int", "type", 3, 3.0),
    _beside("an int where there is a float", "type", 3.0, 3),
    _beside("an int where there is a bool", "type", True, 1),
    _beside("text where there are bytes", "type", b"a", "a"),
    _beside("an enum's number for the enum", "type", Colour.RED, 1),
    _answers("one output missing", "structure", lambda t: [t, t + 1, t + 2], lambda t: [t, t + 1]),
    _answers("one output too many", "structure", lambda t: [t], lambda t: [t, t + 1]),
    _answers("an empty list", "structure at result[1]", lambda t: (t, [1]), lambda t: (t, [])),
    _answers("a key missing", "structure", lambda t: {"a": t, "b": t + 1}, lambda t: {"a": t}),
    _answers("a key too many", "structure", lambda t: {"a": t}, lambda t: {"a": t, "b": t + 1}),
    _answers("another key", "structure", lambda t: {"a": t}, lambda t: {"b": t}),
    _answers("keys in another order", "structure", lambda t: {"a": t, "b": t + 1},
             lambda t: {"b": t + 1, "a": t}),
    _answers("an attribute missing", "structure", lambda t: Plain(a=t, b=1), lambda t: Plain(a=t)),
    _answers("an item of a set missing", "structure at result[1]", lambda t: (t, {1, 2}),
             lambda t: (t, {1})),
    _beside("-1 where there is an int", "value", 5, -1),
    _beside("an int of 70 bits one too large", "value", 2**70, 2**70 + 1),
    _beside("a bool that is the other", "value", True, False),
    _beside("other text", "value", "even", "odd"),
    _beside("a float off", "value", 0.1, 0.11),
    _beside("a float that is NaN", "nan", 0.1, _NAN),
    _beside("a float that is infinite", "inf", 0.1, _INF),
    _beside("a complex number off", "value", 1 + 2j, 1 - 2j),
    _beside("another dtype as a value", "value", torch.float32, torch.float64),
    _beside("another device as a value", "value", torch.device("cpu"), torch.device("meta")),
    _answers("a number in a dict in a list", "value at result[0]['n']",
             lambda t: [{"t": t, "n": 1}], lambda t: [{"t": t, "n": 2}]),
    _answers("a field of a named tuple", "value at result.second", lambda t: Pair(t, 1),
             lambda t: Pair(t, 2)),
    _answers("a field of a dataclass", "value at result.loss", lambda t: Answer(t, t + 1),
             lambda t: Answer(t, t + 1.1)),
    _answers("an attribute of an object", "value at result.b", lambda t: Plain(a=t, b=t + 1),
             lambda t: Plain(a=t, b=t - 1)),
    _answers("another shape as a value", "value at result[1][0], value at result[1][1]",
             lambda t: (t, tuple(t.shape)), lambda t: (t, tuple(t.t().shape))),
    Fault("two outputs exchanged", "forward", found("value at result[0]", "value at result[1]"),
          calling(lambda x: (x.sin(), x.cos()), once(numbers(4, 5))), backends.outputs(list.reverse)),
    spoiled("a NumPy array off", "value", plus(1.0), function=lambda x: (x * 2).numpy()),
    spoiled("a NumPy array of another dtype", "dtype", torch.Tensor.double,
            function=lambda x: (x * 2).numpy()),
    branched("a tensor where there is an array", "type", lambda x: (x * 2).numpy(), lambda x: x * 2),
    branched("an array where there is a tensor", "type", lambda x: x * 2, lambda x: (x * 2).numpy()),
)  # fmt: skip


ALIASING = (
    edited("a copy where there is a view of the input", "aliasing",
           lambda x: x.view(20), replaced("view", lambda t, n: t.reshape(n).clone())),
    Fault("the input itself where there is a copy", "forward", found("aliasing"),
          calling(lambda x: x + 0, once(numbers(4, 5))), backends.wrapped(lambda _, args: list(args))),
    Fault("two outputs share memory", "forward", found("aliasing at result[0]"),
          calling(lambda x: (x * 2, x + x), once(numbers(4, 5))),
          backends.outputs(lambda outs: outs.__setitem__(1, outs[0]))),
    Fault("two outputs no longer share memory", "forward", found("aliasing at result[0]"),
          calling(lambda x: (lambda y: (y, y[0]))(x * 2), once(numbers(4, 5))),
          backends.outputs(lambda outs: outs.__setitem__(1, outs[1].clone()))),
)  # fmt: skip

_GENERATOR = torch.Generator().manual_seed(0)

STREAMS_AND_SWITCHES = (
    beside("a random number drawn from torch", "rng at random state of torch", lambda: torch.rand(1)),
    beside("a random number drawn from Python", "rng at random state of random", random.random),
    beside("a random number drawn from NumPy", "rng at random state of numpy", np.random.rand),
    beside("torch seeded", "rng at random state of torch", lambda: torch.manual_seed(77)),
    beside("the default dtype left changed", "state/mode at default dtype after the call",
           lambda: torch.set_default_dtype(torch.float64)),
    beside("deterministic algorithms left on",
           "state/mode at deterministic algorithms after the call",
           lambda: torch.use_deterministic_algorithms(True)),
    beside("another precision of matrix products left",
           "state/mode at float32 matmul precision after the call",
           lambda: torch.set_float32_matmul_precision("medium")),
    beside("anomaly detection left on", "state/mode at anomaly mode after the call",
           lambda: torch.set_anomaly_enabled(True)),
    beside("the autocast dtype left changed", "state/mode at autocast on CPU after the call",
           lambda: torch.set_autocast_dtype("cpu", torch.float16)),
    beside("another number of threads left", "state/mode at threads after the call",
           lambda: torch.set_num_threads(torch.get_num_threads() + 1)),
)  # fmt: skip

FAULTS = (*VALUES, *SPECIAL, *METADATA, *RESULTS, *ALIASING, *STREAMS_AND_SWITCHES)
