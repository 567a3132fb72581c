"""A value with a bound is a claim: it holds, is broken, or is undecided. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from measured.record import Machine
from measured.snippets import Mistake

Argument = bool | int | float | str
"""What may stand between the parentheses of a filter."""

OUTCOMES = ("holds", "broken", "undecided")

BOUNDS = {
    "at_least": "a number, as in at_least(2)",
    "at_most": "a number, as in at_most(1.5)",
    "between": "two numbers, the smaller one first, as in between(1, 2)",
    "equals": 'a number, a quoted text, true or false, as in equals("the same")',
}
"""Names of the bounds -> what an author is told to write."""

CLASSES = (
    "cpu", "cuda", "linux", "macos", "windows", "x86_64", "aarch64",
    "avx2", "avx512", "amx", "neon", "sve",
)  # fmt: skip
"""What a claim may ask of a machine. `cpu`: there is no GPU."""

_SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
_ARCHITECTURES = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_EXTENSIONS = {
    "AVX2": {"avx2"},
    "AVX-512": {"avx2", "avx512"},
    "AMX": {"avx2", "avx512", "amx"},
    "NEON": {"neon"},
    "SVE": {"neon", "sve"},
}


class Bound(msgspec.Struct, frozen=True):
    """What a value is claimed to be."""

    name: str
    """One of BOUNDS."""
    arguments: tuple[Argument, ...]

    @property
    def words(self) -> str:
        """As a sentence has it, in the value's own unit.

        >>> Bound("between", (1, 2)).words, Bound("equals", ("equal",)).words
        ('between 1 and 2', 'equals "equal"')
        """
        return f"{self.name.replace('_', ' ')} {' and '.join(map(_literal, self.arguments))}"


class Claim(msgspec.Struct, frozen=True):
    """A bound on a value that a page quotes, and whether it holds."""

    expression: str
    bound: str
    """In words."""
    value: Any
    """As it was measured; None where the snippet was not run here."""
    shown: str
    """As the page shows it."""
    outcome: str
    """One of OUTCOMES."""
    reason: str = ""
    """Why it is undecided."""


def bound(name: str, arguments: Sequence[Argument]) -> Bound:
    """One of BOUNDS with arguments that it can have. Raises `Mistake`."""
    match name, arguments:
        case (("at_least" | "at_most"), [limit]) if _is_number(limit):
            pass
        case "between", [low, high] if _is_number(low) and _is_number(high) and low <= high:
            pass
        case "equals", [_]:
            pass
        case _:
            given = ", ".join(map(_literal, arguments)) or "nothing"
            raise Mistake(f"{name} expects {BOUNDS[name]}; it was given {given}")
    return Bound(name, tuple(arguments))


def machine_classes(names: Sequence[Argument]) -> tuple[str, ...]:
    """The arguments of `on`. Raises `Mistake`."""
    known = ", ".join(CLASSES)
    if not names:
        raise Mistake(f'on expects classes of machines, as in on("linux", "x86_64"): {known}')
    for name in names:
        if name not in CLASSES:
            raise Mistake(f"{_literal(name)} is no class of machines; known: {known}")
    return tuple(map(str, names))


def classes_of(machine: Machine) -> set[str]:
    """The CLASSES that a machine belongs to."""
    system, _, rest = machine.system.partition(" ")
    found = {"cpu" if machine.gpu is None else "cuda"}
    found |= {_SYSTEMS.get(system, ""), _ARCHITECTURES.get(rest.rpartition(" ")[2], "")}
    found |= _EXTENSIONS.get(machine.isa, set())
    if "aarch64" in found:
        found.add("neon")  # Part of the architecture; not every system lists it.
    return found - {""}


def decide(
    bound: Bound,
    value: Any,
    needs: Collection[str],
    machine: Machine,
    disturbances: Sequence[str],
) -> tuple[str, str]:
    """Outcome of a claim, and why it is undecided.

    `needs` are the CLASSES that the claim is about, `machine` the one on which `value` was
    measured, `disturbances` what disturbed that run. Raises `Mistake` where no value of this type
    could ever be within the bound.
    """
    within = _within(bound, value)
    here = classes_of(machine)
    if missing := [name for name in CLASSES if name in needs and name not in here]:
        return "undecided", f"this machine is not {' and not '.join(missing)}"
    # A count or the name of a kernel is what it is, however busy the machine.
    if disturbances and isinstance(value, float):
        return "undecided", "; ".join(disturbances)
    return ("holds" if within else "broken"), ""


def worst(claims: Sequence[Claim]) -> str:
    """The outcome that a reader must see first."""
    outcomes = {claim.outcome for claim in claims}
    return next(outcome for outcome in ("broken", "undecided", "holds") if outcome in outcomes)


def _within(bound: Bound, value: Any) -> bool:
    match bound.name, bound.arguments:
        case "at_least", (low,) if _is_number(value):
            return value >= low
        case "at_most", (high,) if _is_number(value):
            return value <= high
        case "between", (low, high) if _is_number(value):
            return low <= value <= high
        case "equals", (expected,) if _kind(value) == _kind(expected):
            return value == expected
    raise Mistake(f"{bound.words} can not be said of {value!r}")


def _is_number(value: Any) -> bool:
    return _kind(value) == "number"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def _literal(argument: Argument) -> str:
    """As an author writes it."""
    if isinstance(argument, bool):
        return str(argument).lower()
    return f'"{argument}"' if isinstance(argument, str) else repr(argument)
