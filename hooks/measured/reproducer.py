"""Writes a program that shows one difference with nothing but torch. Pure.

What a difference is about decides what the program looks at; where it can not look, it says so.
"""

from __future__ import annotations

import json
import math
import re

from measured import templating
from measured.child import Target
from measured.record import Call, Difference, Origin
from measured.stages import STAGES

SHARE = 10
"""A float counts as different again from this part of the measured difference on: what rounding
leaves once a fault is mended is far less."""

_FACTS = ("dtype", "device", "layout", "shape", "stride", "requires_grad")
_ELEMENTS = ("value", "nan", "inf")
_EXCEPTIONS = ("exception-only-in-eager", "exception-only-in-compiled", "exception-type")
_UNSEEN = re.compile(r"#\d|^default of |^random state of | from the other results$|, in the back")
"""Paths that are no Python expressions in what the program holds."""
_SHARED = re.compile(r"shares memory with (?P<other>.+) in (?:eager|compiled) only")

_templates = templating.environment(keep_trailing_newline=True)
_templates.filters.update(literal=repr)


def write(
    source: str,
    name: str,
    call: Call,
    difference: Difference,
    *,
    origin: Origin,
    arguments: list[str] | None = None,
    fallback_random: bool = False,
    seed: int = 0,
) -> str:
    """The text of the program. `source` is the audited program, `name` its file's."""
    what, place, other, instead = looks_at(difference)
    return _templates.get_template("reproducer.py.jinja").render(
        source=_quoted(source),
        name=name,
        arguments=arguments or [],
        call=call,
        gradient=place.startswith("gradient of "),
        place=place.removeprefix("gradient of "),
        what=what,
        other=other,
        instead=instead,
        index=_index(difference.index),
        allowed=_allowed(difference),
        about=[
            f"{difference.path}: {difference.message or 'differs'} ({difference.kind})",
            *filter(None, [_values(difference)]),
        ],
        stage=STAGES.get(origin.stage, "") if origin.same else "",
        culprit=origin.culprit,
        fallback_random=fallback_random,
        seed=seed,
    )


def looks_at(difference: Difference) -> tuple[str, str, str, str]:
    """What the program looks at, at which place, beside which other, and why at nothing better."""
    kind, path = difference.kind, difference.path
    if kind in _EXCEPTIONS:
        return "exception", "result", "", ""
    if not _UNSEEN.search(path):
        if kind in (*_FACTS, *_ELEMENTS, "type", "structure"):
            return ("value" if kind in _ELEMENTS else kind), path, "", ""
        if kind == "aliasing" and (shared := _SHARED.search(difference.message)):
            return kind, path, shared["other"], ""
    return "text", "result", "", f"{kind} of {path}"


def file_name(name: str, target: Target, difference: Difference) -> str:
    """A name that no other difference of the program has."""
    words = [name, difference.name, target.process, target.callable_index, target.number]
    place = re.sub(r"\W+", "-", target.path).strip("-")
    return "-".join(re.sub(r"[^\w.]+", "-", str(word)) for word in (*words, place)) + ".py"


def _values(difference: Difference) -> str:
    if not (difference.eager or difference.compiled):
        return ""
    where = f"at {difference.index}: " if difference.index else ""
    return f"{where}eager {difference.eager}, compiled {difference.compiled}"


def _quoted(source: str) -> str:
    """The program as a literal that can be read, where its own text allows it."""
    if "'''" in source or source.endswith(("'", "\\")) or not source.isascii():
        return repr(source)
    return f"r'''{source}'''"


def _index(text: str) -> list[int]:
    """The position of an element, which is written as a tuple."""
    return json.loads(f"[{text.strip('(), ')}]") if text else []


def _allowed(difference: Difference) -> float:
    """How far two floats may be apart and still be the same."""
    try:
        apart = abs(float(difference.eager) - float(difference.compiled))
    except ValueError:
        return 0.0
    whole = not difference.dtype.startswith(("torch.float", "torch.bfloat", "torch.complex"))
    return 0.0 if whole or not math.isfinite(apart) else apart / SHARE
