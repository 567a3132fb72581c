"""`{{ part/name.value | filter }}`: values of snippets in prose. Pure.

A small grammar of its own, not Jinja, in which the slash of a snippet's path would divide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from measured.snippets import Mistake

_REFERENCE = re.compile(r"(?P<name>[\w/-]+)\.(?P<path>[\w-]+(?:\.[\w-]+)*)")


def evaluate(expression: str, values: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """Name of the snippet, and its value through the filters, as text for the page.

    `values` maps the name of each snippet to its values. Raises `Mistake`.
    """
    reference, *filters = (part.strip() for part in expression.split("|"))
    if _REFERENCE.fullmatch(reference) is None:
        raise Mistake(f"{{{{ {expression} }}}}: expected part/name.value | filter")
    try:
        name, value = look_up(reference, values)
    except Mistake as mistake:
        raise Mistake(f"{{{{ {expression} }}}}: {mistake}") from None
    if not filters:
        filters = ["text"]
    for filter_name in filters:
        if filter_name not in FILTERS:
            known = ", ".join(FILTERS)
            raise Mistake(f"{{{{ {expression} }}}}: no filter {filter_name}; known: {known}")
        try:
            value = FILTERS[filter_name](value)
        except TypeError:
            raise Mistake(f"{{{{ {expression} }}}}: {filter_name} can not show {value!r}") from None
    return name, str(value)


def look_up(reference: str, values: Mapping[str, Mapping[str, Any]]) -> tuple[str, Any]:
    """Name of the snippet, and the value that `part/name.value` means. Raises `Mistake`."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise Mistake("expected part/name.value")
    name, path = match["name"], match["path"]
    if name not in values:
        raise Mistake(f"no snippet {name} runs on this site")
    value: Any = values[name]
    for step in path.split("."):
        value = _step(value, step)
    return name, value


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
