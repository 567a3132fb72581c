"""Faults in what a call raises, and when."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from mutants import backends
from mutants.fault import Compile, Fault, Make, found
from mutants.forward import SOME, once
from mutants.state import Counting

IN_EAGER = found("exception-only-in-eager at call")
IN_COMPILED = found("exception-only-in-compiled at call")
OF_ANOTHER_KIND = found("exception-type at call")

_PICK = once(torch.ones(3), torch.tensor([0, 99]))
"""Arguments that no index of a tensor fits."""


def pick(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return x[i]


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def raising(error: Callable[[], BaseException], since: int = 1) -> backends.Maker:
    """The compiled code raises."""

    def around(gm: Any, args: Any) -> Any:
        raise error()

    return backends.wrapped(around, since)


def _fault(
    name: str,
    expected: frozenset[str],
    maker: backends.Maker,
    function: Callable[[], Any] = lambda: double,
    make: Make = SOME,
    times: int = 1,
) -> Fault:
    def program(compile: Compile, planted: bool) -> None:
        compiled = compile(function())
        for _ in range(times):
            with contextlib.suppress(Exception, SystemExit):
                compiled(*make())

    return Fault(name, "forward" if times == 1 else "later call", expected, program, maker)


_ERRORS = (
    ValueError,
    IndexError,
    AssertionError,
    ZeroDivisionError,
    NotImplementedError,
    SystemExit,
)


def _lost(_: Any, args: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [torch.zeros(2)]


FAULTS = (
    *(
        _fault(f"{kind.__name__} raised by compiled code", IN_COMPILED, raising(kind))
        for kind in _ERRORS
    ),
    *(
        _fault(f"{kind.__name__} in the place of IndexError", OF_ANOTHER_KIND, raising(kind),
               lambda: pick, _PICK)
        for kind in (ValueError, KeyError, RuntimeError)
    ),
    _fault("an index that is not checked", IN_EAGER, backends.wrapped(_lost), lambda: pick, _PICK),
    _fault("an index of an embedding that is not checked", IN_EAGER,
           backends.wrapped(lambda gm, args: [torch.zeros(2)]),
           lambda: lambda x, i: torch.nn.functional.embedding(i, x),
           once(torch.ones(3, 2), torch.tensor([7]))),
    _fault("an exception of a module that writes state", IN_COMPILED,
           raising(ValueError), Counting),
    *(
        _fault(f"an exception from call {n}", IN_COMPILED, raising(ValueError, n), times=n)
        for n in (2, 4, 8)
    ),
)  # fmt: skip
