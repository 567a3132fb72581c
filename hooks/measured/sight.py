"""What the caller of a function can see when the call is over, as places with values.

Two runs of a call are compared by their sights. A sight stands on copies of everything that was
there before the call, so that putting the state back does not change it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from measured import compare, holders, modes
from measured.compare import Thing
from measured.reach import Reach, reach
from measured.record import Difference
from measured.snapshot import Snapshot, has_storage


@dataclasses.dataclass
class Outcome:
    """What a call gave."""

    result: Any = None
    error: BaseException | None = None


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """Call it, and keep whatever comes of it."""
    try:
        return Outcome(result=function(*args, **kwargs))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(error=error)


@dataclasses.dataclass
class Sight:
    """What can be seen of one run of a call."""

    places: dict[str, Any]
    """Path -> tensor, plain value, `compare.Inner`, `compare.Thing`, or random stream."""
    shared: dict[str, frozenset[str]]
    """Path of a tensor -> paths of the tensors whose memory overlaps with its own."""
    switches: dict[str, Any]
    """The switches of `modes` that a call may leave changed."""


def live(outcome: Outcome, reached: Reach, before: Reach) -> dict[str, Any]:
    """Path -> what stands there now, the program's own tensors among it.

    `reached` is what the call reaches when it is over, `before` what it reached before.
    """
    streams = {f"random state of {name}": state for name, state in holders.streams().items()}
    return compare.nodes(outcome.result, "result") | _state(reached, before) | streams


def see(
    outcome: Outcome,
    after: Snapshot,
    before: Reach,
    originals: dict[int, torch.Tensor] | None = None,
) -> Sight:
    """Look at a run that has just ended, and left the state `after`.

    `originals` maps the identity of a stand-in to the tensor that it stands for.
    """
    places = live(outcome, after.reached, before)
    tensors = {path: leaf for path, leaf in places.items() if isinstance(leaf, torch.Tensor)}
    places |= {path: after.copy_of(tensor) for path, tensor in tensors.items()}
    switches = modes.read()
    # A twin runs without autocast's cache, so that no cast of its own stays there.
    switches.pop("autocast cache")
    return Sight(places, _shared(tensors, originals or {}), switches)


def _state(reached: Reach, before: Reach) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for path, part in parts(reached).items():
        if isinstance(part, torch.Tensor):
            # The tensor itself is listed where it was met first.
            first, _ = reached.tensors.get(id(part), (path, part))
            if first != path:
                state[path] = Thing("torch.Tensor", first)
        elif isinstance(part, (tuple, frozenset)):
            state |= {
                inner: _told(leaf, before)
                for inner, leaf in compare.nodes(part, path).items()
                if not isinstance(leaf, torch.Tensor)
            }
        else:
            state[path] = _told(part, before)
    return state | dict(reached.tensors.values())


def parts(reached: Reach) -> dict[str, Any]:
    """Path -> every part of everything that holds state now."""
    return {
        path + suffix: part
        for path, thing, holder in reached.holders.values()
        for suffix, part in holder.parts(holder.save(thing))
    }


def held(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    before: Reach,
) -> dict[str, Any]:
    """Path -> what is held there now, tensors left out."""
    state = _state(reach(function, args, kwargs), before)
    return {path: value for path, value in state.items() if not isinstance(value, torch.Tensor)}


def _told(part: Any, before: Reach) -> Any:
    """A value, or which object it is."""
    if compare.is_value(part):
        return part
    return Thing(
        f"{type(part).__module__}.{type(part).__qualname__}".removeprefix("builtins."),
        before.names.get(id(part)),
    )


def _shared(
    tensors: dict[str, torch.Tensor], originals: dict[int, torch.Tensor]
) -> dict[str, frozenset[str]]:
    by_storage: dict[int, list[tuple[int, int, str]]] = collections.defaultdict(list)
    # What a twin wrote to a stand-in, or returned as a view of it, belongs to the tensor itself.
    stands_for = {
        tensor.untyped_storage()._cdata: originals[id(tensor)].untyped_storage()
        for tensor in tensors.values()
        if id(tensor) in originals and has_storage(tensor)
    }
    for path, tensor in tensors.items():
        if not has_storage(tensor) or tensor.numel() == 0:
            continue
        storage = tensor.untyped_storage()
        home = stands_for.get(storage._cdata, storage)
        start = home.data_ptr() + tensor.storage_offset() * tensor.element_size()
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        extent = 1 + sum((size - 1) * stride for size, stride in pairs)
        by_storage[home._cdata].append((start, start + extent * tensor.element_size(), path))
    return {
        path: frozenset(
            other for first, last, other in group if other != path and first < end and start < last
        )
        for group in by_storage.values()
        if len(group) > 1
        for start, end, path in group
    }


def compared(
    eager: Sight, compiled: Sight, reference: compare.Reference | None = None
) -> compare.Report:
    """Everything in which the two sights differ."""
    report = compare.places(eager.places, compiled.places, reference)
    report.differences += _aliasing(eager, compiled)
    report.differences += [
        Difference(
            kind="mode",
            path=f"{name} after the call",
            message="",
            eager=str(value),
            compiled=str(compiled.switches[name]),
        )
        for name, value in eager.switches.items()
        if compiled.switches[name] != value
    ]
    return report


def _aliasing(eager: Sight, compiled: Sight) -> list[Difference]:
    """Pairs of tensors that share memory in one run and not in the other, each named once."""
    pairs: dict[tuple[str, str], bool] = {}
    in_both = eager.places.keys() & compiled.places.keys()  # Else that has been said.
    for path in in_both & (eager.shared.keys() | compiled.shared.keys()):
        left, right = (s.shared.get(path, frozenset()) for s in (eager, compiled))
        for other in (left ^ right) & in_both:
            first, second = sorted((path, other), key=lambda p: (not p.startswith("result"), p))
            pairs[first, second] = other in left
    return [
        Difference(
            kind="aliasing",
            path=first,
            message=f"shares memory with {second} in {'eager' if in_eager else 'compiled'} only: "
            "a later write to one is seen in the other",
        )
        for (first, second), in_eager in sorted(pairs.items())
    ]
