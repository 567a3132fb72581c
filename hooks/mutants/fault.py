"""A planted fault: a program, what is wrong with its compiled code, and what has to be found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from mutants import backends

Compile = Callable[[Any], Any]
"""How a program compiles a function, a module, or an optimizer's step."""

Make = Callable[[], tuple[Any, ...]]
"""Makes the arguments of a call. Anew for each run: a fault may write to them."""

PLACES = ("forward", "backward", "state", "later call")


@dataclasses.dataclass(frozen=True)
class Fault:
    """One row of the suite."""

    name: str
    place: str
    """One of PLACES: what is wrong first, or `later call` where the first calls are right."""
    expected: frozenset[str]
    """What the audit must find, and nothing else, as `name at path`."""
    program: Callable[[Compile, bool], None]
    """Called with whether the fault is planted, for what a backend can not do."""
    backend: backends.Maker = backends.right
    control: backends.Maker = backends.right
    """What compiles the program when nothing is planted."""

    def run(self, planted: bool) -> None:
        """Run the program, with its fault or, to see that it agrees then, without."""
        maker = self.backend if planted else self.control
        self.program(lambda part: torch.compile(part, backend=maker()), planted)


def found(*differences: str) -> frozenset[str]:
    """What a row expects. A name alone stands for a difference in the result."""
    return frozenset(one if " at " in one else f"{one} at result" for one in differences)


def calling(function: Any, make: Make, times: int = 1) -> Callable[[Compile, bool], None]:
    """A program that compiles a function and calls it."""

    def program(compile: Compile, planted: bool) -> None:
        compiled = compile(function)
        for _ in range(times):
            compiled(*make())

    return program


def branching(
    eager: Callable[..., Any], compiled: Callable[..., Any], make: Make, times: int = 1
) -> Callable[[Compile, bool], None]:
    """A program whose function does one thing in eager, and with the fault another compiled."""

    def program(compile: Compile, planted: bool) -> None:
        def function(*args: Any) -> Any:
            if planted and torch.compiler.is_compiling():
                return compiled(*args)
            return eager(*args)

        calling(function, make, times)(compile, planted)

    return program
