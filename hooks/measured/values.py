"""`{{ part/name.value | filter | bound }}`: values of snippets in prose. Pure.

A small grammar of its own, not Jinja, in which the slash of a snippet's path would divide. Filters
show the value; bounds (`claims`) judge it as it was measured, wherever they stand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from measured import claims
from measured.claims import Argument, Bound, Claim
from measured.record import Machine
from measured.snippets import Mistake

_REFERENCE = re.compile(r"(?P<name>[\w/-]+)\.(?P<path>[\w-]+(?:\.[\w-]+)*)")


class Quotation(msgspec.Struct, frozen=True):
    """What stands between the braces, understood."""

    expression: str
    name: str
    """Of the snippet."""
    path: tuple[str, ...]
    """Name of the value, and the steps into it."""
    filter: str
    """The one of FILTERS that shows it."""
    bounds: tuple[Bound, ...]
    needs: tuple[str, ...]
    """Classes of the machine without which the bounds decide nothing."""


def parse(expression: str) -> Quotation:
    """Raises `Mistake` on whatever is wrong without any value."""
    with _told_of(expression):
        reference, *parts = _split(expression)
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            raise Mistake("expected part/name.value | filter")
        filters: list[str] = []
        bounds: list[Bound] = []
        needs: list[str] = []
        for name, arguments in map(_call, parts):
            if name in claims.BOUNDS:
                bounds.append(claims.bound(name, arguments or ()))
            elif name == "on":
                needs += claims.machine_classes(arguments or ())
            elif name not in FILTERS:
                known = ", ".join((*FILTERS, *claims.BOUNDS, "on"))
                raise Mistake(f"no filter {name}; known: {known}")
            elif arguments is not None:
                raise Mistake(f"{name} takes no arguments")
            else:
                filters.append(name)
        if len(filters) > 1:
            raise Mistake(f"{' and '.join(filters)}: one filter shows a value")
        if needs and not bounds:
            raise Mistake(f"on(...) needs a bound beside it: {', '.join(claims.BOUNDS)}")
        return Quotation(
            expression,
            match["name"],
            tuple(match["path"].split(".")),
            filters[0] if filters else "text",
            tuple(bounds),
            tuple(needs),
        )


def evaluate(quotation: Quotation, values: Mapping[str, Mapping[str, Any]]) -> tuple[Any, str]:
    """The value as it was measured, and as text for the page.

    `values` maps the name of each snippet to its values. Raises `Mistake`.
    """
    with _told_of(quotation.expression):
        value = _value(quotation.name, quotation.path, values)
        try:
            return value, FILTERS[quotation.filter](value)
        except TypeError:
            raise Mistake(f"{quotation.filter} can not show {value!r}") from None


def claims_on(
    quotation: Quotation,
    value: Any,
    shown: str,
    machine: Machine,
    disturbances: Sequence[str],
) -> list[Claim]:
    """A claim for each bound on a value, measured on `machine`; see `claims.decide`.

    Raises `Mistake`.
    """
    with _told_of(quotation.expression):
        return [
            Claim(
                quotation.expression,
                bound.words,
                value,
                shown,
                *claims.decide(bound, value, quotation.needs, machine, disturbances),
            )
            for bound in quotation.bounds
        ]


@contextmanager
def _told_of(expression: str) -> Iterator[None]:
    """A mistake names the expression that it is in."""
    try:
        yield
    except Mistake as mistake:
        raise Mistake(f"{{{{ {expression} }}}}: {mistake}") from None


def _split(expression: str) -> list[str]:
    """The parts between the bars; a bar in quotation marks divides nothing."""
    parts, quote = [""], ""
    for character in expression:
        if character == "|" and not quote:
            parts.append("")
            continue
        if character == quote:
            quote = ""
        elif character in "\"'" and not quote:
            quote = character
        parts[-1] += character
    return [part.strip() for part in parts]


def _call(part: str) -> tuple[str, list[Argument] | None]:
    """Name of a filter, and its arguments if it has parentheses. They are written as in Python."""
    try:
        node = ast.parse(part, mode="eval").body
    except (SyntaxError, ValueError):
        node = None
    match node:
        case ast.Name(name):
            return name, None
        case ast.Call(ast.Name(name), arguments, []):
            return name, [_argument(argument) for argument in arguments]
    raise Mistake(f"expected a filter, as in seconds or at_least(2), and not: {part}")


def _argument(node: ast.expr) -> Argument:
    match node:
        case ast.Name("true" | "false" as truth):
            return truth == "true"
        case ast.Constant(bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
    raise Mistake(
        f"{ast.unparse(node)}: expected a number, a text in quotation marks, true or false"
    )


def look_up(reference: str, values: Mapping[str, Mapping[str, Any]]) -> tuple[str, Any]:
    """Name of the snippet, and the value that `part/name.value` means. Raises `Mistake`."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise Mistake("expected part/name.value")
    return match["name"], _value(match["name"], match["path"].split("."), values)


def _value(name: str, path: Iterable[str], values: Mapping[str, Mapping[str, Any]]) -> Any:
    if name not in values:
        raise Mistake(f"no snippet {name} runs on this site")
    value: Any = values[name]
    for step in path:
        value = _step(value, step)
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    if isinstance(value, Mapping) and step in value:
        return value[step]
    known = ", ".join(map(str, value)) if isinstance(value, Mapping) else "none"
    raise Mistake(f"no value {step}; there are: {known}")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    return value


def significant(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits, none beyond them after the point, no exponent.

    >>> significant(0.01234), significant(12.34), significant(1234.5), significant(3.0)
    ('0.0123', '12.3', '1234', '3.00')
    """
    if value == 0:
        return "0"
    exponent = int(f"{abs(value):.{digits - 1}e}".split("e")[1])
    return f"{value:.{max(digits - 1 - exponent, 0)}f}"


def seconds(value: Any) -> str:
    """A duration in seconds, in the unit that keeps it between 1 and 1000.

    >>> seconds(3.2), seconds(0.041), seconds(1.2e-5)
    ('3.20 s', '41.0 ms', '12.0 µs')
    """
    number = _number(value)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(number) >= size * 0.9995 or (unit == "s" and number == 0):
            return f"{significant(number / size)} {unit}"
    return f"{significant(number / 1e-9)} ns"


def times(value: Any) -> str:
    """A ratio.

    >>> times(2.345)
    '2.35×'
    """
    return f"{significant(_number(value))}×"


def size(value: Any) -> str:
    """A number of bytes in binary units.

    >>> size(1536), size(12)
    ('1.50 KiB', '12 bytes')
    """
    number = _number(value)
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if abs(number) >= 1 << power:
            return f"{significant(number / (1 << power))} {unit}"
    return f"{number:.0f} bytes"


def count(value: Any) -> str:
    """A whole number with thousands separated.

    >>> count(12345)
    '12,345'
    """
    number = _number(value)
    if number != int(number):
        raise TypeError(value)
    return f"{int(number):,}"


def percent(value: Any) -> str:
    """A fraction as a percentage.

    >>> percent(0.123)
    '12.3 %'
    """
    return f"{significant(_number(value) * 100)} %"


def number(value: Any) -> str:
    """A plain number to three significant digits.

    >>> number(12.6417), number(14)
    ('12.6', '14')
    """
    return str(value) if type(value) is int else significant(_number(value))


def text(value: Any) -> str:
    """The value as Python prints it; strings without quotes."""
    if isinstance(value, (list, Mapping)):
        raise TypeError(value)
    return str(value)


FILTERS: dict[str, Callable[[Any], str]] = {
    "seconds": seconds,
    "times": times,
    "bytes": size,
    "count": count,
    "percent": percent,
    "number": number,
    "text": text,
}
