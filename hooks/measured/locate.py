"""Finds where in the compiler a difference arises, by running the program again. Pure.

Who calls says how the program is run: `again(stage, seconds)` audits it with a compiler that stops
after a stage, `bisect(target, stage, seconds)` lets torch's bisector switch off parts of a stage.
Both give None where the program did not end within these seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from measured.child import Target
from measured.constants import BISECT_SECONDS, LOCATE_SECONDS
from measured.events import Bisected
from measured.record import Call, Difference, Origin
from measured.stages import BISECTED, OWN, STAGES

Found = tuple[Call, Difference]
Again = Callable[[str, float], list[Call] | None]
Bisect = Callable[[Target, str, float], Bisected | None]


def target(call: Call, difference: Difference) -> Target:
    """What further runs look for: this difference of this call."""
    return Target(call.process, call.callable_index, call.number, difference.kind, difference.path)


def locate(found: Iterable[Found], again: Again, bisect: Bisect) -> dict[Target, Origin]:
    """Where each difference arises: its stage, and within it the part, where that can be told.

    Of several that arise in the same stage in the same call, the part is looked for of one: a
    bisection is a dozen runs.
    """
    origins = _stages(list(found), again)
    end = time.monotonic() + BISECT_SECONDS
    done: dict[tuple[int, int, int, str], str] = {}
    for sought, origin in origins.items():
        if origin.stage in BISECTED and origin.same:
            where = (sought.process, sought.callable_index, sought.number, origin.stage)
            left = end - time.monotonic()
            if where in done:
                told = Bisected("", f"looked for at {done[where]} only")
            elif left <= 0 or (told := bisect(sought, origin.stage, left)) is None:
                told = Bisected("", f"not found within {BISECT_SECONDS:g} s")
            done.setdefault(where, sought.path)
            origins[sought] = msgspec.structs.replace(
                origin, culprit=told.culprit, detail=told.detail
            )
    return origins


def _stages(found: list[Found], again: Again) -> dict[Target, Origin]:
    origins: dict[Target, Origin] = {}
    by_name: dict[Target, str] = {}
    end = time.monotonic() + LOCATE_SECONDS
    order = list(STAGES)
    sought = {target(*one): one for one in found}
    for key, (call, _) in sought.items():
        if call.stage not in STAGES:
            origins[key] = Origin(OWN)
    for stage in order:
        # A backend that ends earlier has no such stage.
        waiting = {
            key: one
            for key, one in sought.items()
            if key not in origins and order.index(one[0].stage) >= order.index(stage)
        }
        if not waiting:
            continue
        left = end - time.monotonic()
        calls = again(stage, left) if left > 0 else None
        if calls is None:
            late = Origin("", detail=f"not found within {LOCATE_SECONDS:g} s")
            origins.update(dict.fromkeys(waiting, late))
            break
        met = {target(call, difference) for call in calls for difference in call.differences}
        names = {difference.name for call in calls for difference in call.differences}
        for key, (_, difference) in waiting.items():
            if key in met:
                origins[key] = Origin(stage)
            elif difference.name in names:
                by_name.setdefault(key, stage)
    for key in sought.keys() - origins.keys():
        if key in by_name:
            origins[key] = Origin(by_name[key], same=False)
        else:
            origins[key] = Origin("", detail="a second audit did not find it again")
    return {key: origins[key] for key in sought}


def put(calls: list[Call], origins: dict[Target, Origin]) -> list[Call]:
    """The calls, with the origin of each difference that has one."""
    return [
        msgspec.structs.replace(
            call,
            differences=[
                msgspec.structs.replace(d, origin=origins.get(target(call, d), d.origin))
                for d in call.differences
            ],
        )
        for call in calls
    ]


def lines(origin: Origin) -> list[str]:
    """What a reader is told."""
    if origin.stage == OWN:
        told = "a backend of the program's own, or Dynamo before it"
    elif not origin.stage:
        told = f"unknown: {origin.detail}"
    else:
        told = STAGES[origin.stage]
        if not origin.same:
            told += "; there a difference of this name was found, but of another call or place"
        elif origin.culprit:
            told += f": {origin.culprit}"
        elif origin.detail:
            told += f"; which part of it: {origin.detail}"
    found = [f"arises in: {told}"]
    if origin.reproducer:
        shows = {
            True: "",
            False: " (it was run, and does not show the difference)",
            None: " (it was not run to its end)",
        }[origin.reproduced]
        found.append(f"reproducer: {origin.reproducer}{shows}")
    return found
