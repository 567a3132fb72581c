"""Things that hold state: how to look into them, save what they hold, and put it back in place.

Each holder is a small set of pure functions for one kind of thing. A tensor is none of them: its
storage is shared, and `snapshot` saves that.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import io
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

ABSENT = object()
"""What an empty cell, a deleted global or an unset slot holds."""

Part = tuple[str, Any]
"""What to add to the path of a thing, and what is found there."""


class Holder(NamedTuple):
    """One kind of thing."""

    save: Callable[[Any], Any]
    """What it holds now. Never the thing itself, never a copy of what it holds."""
    put_back: Callable[[Any, Any], None]
    """Write what was saved in place, and touch nothing that has not changed."""
    parts: Callable[[Any], Iterator[Part]]
    """Parts of what was saved, each by what it adds to the path: what a program could see."""
    has_inside: bool = True
    """Whether the parts are objects of the program, which may hold state themselves."""


def holder_of(thing: Any) -> Holder | None:
    """How to treat `thing`, or None if it holds nothing that could change."""
    for kind, holder in _HOLDERS:
        if isinstance(thing, kind):
            return holder
    return _numpy_holder(thing)


class Binding:
    """A global that code names: it may be bound to something else, or deleted."""

    __slots__ = ("name", "namespace")

    def __init__(self, namespace: dict[str, Any], name: str) -> None:
        self.namespace = namespace
        self.name = name


class Attributes:
    """The dict of an object: what it holds are attributes, not items."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner


class Slots:
    """The slots of an object, which has no dict for them."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def names(self) -> Iterator[str]:
        for kind in type(self.owner).__mro__:
            names = vars(kind).get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if isinstance(vars(kind).get(name), types.MemberDescriptorType):
                    yield name


class ClassBody:
    """The attributes of a class, which only `setattr` can write."""

    __slots__ = ("owner",)

    def __init__(self, owner: type) -> None:
        self.owner = owner


def _same_items(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(a is b for a, b in zip(now, before, strict=True))


def step(key: Any) -> str:
    """How a key of a mapping is written in a path."""
    return f"[{key!r}]" if isinstance(key, (str, int, float, tuple, type(None))) else "[...]"


def _save_dict(thing: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(thing.items())


def _put_back_dict(thing: dict[Any, Any], saved: list[tuple[Any, Any]]) -> None:
    # Writing to an untouched dict would invalidate guards that Dynamo may hold on its version.
    if _same_items(list(thing), [key for key, _ in saved]) and _same_items(
        list(thing.values()), [value for _, value in saved]
    ):
        return
    thing.clear()
    thing.update(saved)


_COMPILER = ("_dynamo", "_torchdynamo", "torchdynamo", "_compiled_call_impl", "_is_frozen_param")
"""Attributes that compiling itself leaves on functions, modules and tensors."""


def _save_attributes(attributes: Attributes) -> list[tuple[str, Any]]:
    return [
        item for item in vars(attributes.owner).items() if not str(item[0]).startswith(_COMPILER)
    ]


def _put_back_attributes(attributes: Attributes, saved: list[tuple[str, Any]]) -> None:
    now, before = dict(_save_attributes(attributes)), dict(saved)
    namespace = vars(attributes.owner)
    for name in now.keys() - before.keys():
        del namespace[name]
    for name, value in saved:
        if now.get(name, ABSENT) is not value:
            namespace[name] = value


_TABLES = ("_parameters", "_buffers", "_modules")


def _attribute_parts(saved: list[tuple[str, Any]]) -> Iterator[Part]:
    for name, value in saved:
        # A module keeps its parts in tables; a reader knows them as attributes.
        if name in _TABLES and isinstance(value, dict):
            yield from ((f".{key}", item) for key, item in value.items())
        yield f".{name}", value


def _put_back_list(thing: Any, saved: list[Any]) -> None:
    if not _same_items(list(thing), saved):
        thing.clear()
        thing.extend(saved)


def _list_parts(saved: list[Any]) -> Iterator[Part]:
    yield from ((f"[{index}]", item) for index, item in enumerate(saved))
    yield ".length", len(saved)


def _put_back_set(thing: set[Any], saved: list[Any]) -> None:
    if thing != set(saved):
        thing.clear()
        thing.update(saved)


def _set_parts(saved: list[Any]) -> Iterator[Part]:
    yield ".length", len(saved)
    plain = sorted(repr(item) for item in saved if isinstance(item, (int, float, str, bytes)))
    yield ".items", ", ".join(plain)
    yield from ((".item", item) for item in saved)


def _put_back_bytes(thing: bytearray, saved: bytes) -> None:
    if thing != saved:
        thing[:] = saved


def _save_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def _put_back_cell(cell: types.CellType, saved: Any) -> None:
    if _save_cell(cell) is saved:
        return
    if saved is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = saved


def _save_binding(binding: Binding) -> Any:
    return binding.namespace.get(binding.name, ABSENT)


def _put_back_binding(binding: Binding, saved: Any) -> None:
    if _save_binding(binding) is saved:
        return
    if saved is ABSENT:
        del binding.namespace[binding.name]
    else:
        binding.namespace[binding.name] = saved


def _one_part(saved: Any) -> Iterator[Part]:
    if saved is not ABSENT:
        yield "", saved


def _save_slots(slots: Slots) -> list[tuple[str, Any]]:
    return [(name, getattr(slots.owner, name, ABSENT)) for name in slots.names()]


def _put_back_slots(slots: Slots, saved: list[tuple[str, Any]]) -> None:
    for name, value in saved:
        if getattr(slots.owner, name, ABSENT) is value:
            continue
        if value is ABSENT:
            object.__delattr__(slots.owner, name)
        else:  # Frozen dataclasses forbid the ordinary way.
            object.__setattr__(slots.owner, name, value)


def _slot_parts(saved: list[tuple[str, Any]]) -> Iterator[Part]:
    yield from ((f".{name}", value) for name, value in saved if value is not ABSENT)


_CODE = (types.FunctionType, classmethod, staticmethod, property, functools.cached_property)


def _save_class(body: ClassBody) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in list(vars(body.owner).items())
        # What the interpreter itself keeps there is not the program's, nor are descriptors.
        if not (name.startswith("__") and name.endswith("__"))
        and not inspect.isdatadescriptor(value)
    ]


def _put_back_class(body: ClassBody, saved: list[tuple[str, Any]]) -> None:
    now, before = dict(_save_class(body)), dict(saved)
    for name in now.keys() - before.keys():
        type.__delattr__(body.owner, name)
    for name, value in saved:
        if now.get(name, ABSENT) is not value:
            type.__setattr__(body.owner, name, value)


def _class_parts(saved: list[tuple[str, Any]]) -> Iterator[Part]:
    yield from ((f".{name}", value) for name, value in saved if not isinstance(value, _CODE))


def _save_text(stream: Any) -> Any:
    return None if stream.closed else (stream.getvalue(), stream.tell())


def _put_back_text(stream: Any, saved: Any) -> None:
    if saved is not None and not stream.closed and _save_text(stream) != saved:
        text, position = saved
        stream.seek(0)
        stream.truncate()
        stream.write(text)
        stream.seek(position)


def _text_parts(saved: Any) -> Iterator[Part]:
    yield ".getvalue()", None if saved is None else saved[0]


class Stream:
    """State of a random number generator. Equal where the generators go on alike."""

    __slots__ = ("state",)

    def __init__(self, state: Any) -> None:
        self.state = state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and _key(self.state) == _key(other.state)

    __hash__ = None  # Equal by content that changes.


def _key(state: Any) -> Any:
    """The state in a form that `==` compares as a whole."""
    if isinstance(state, torch.Tensor):
        return bytes(state.numpy())
    if isinstance(state, dict):
        return {name: _key(part) for name, part in state.items()}
    if isinstance(state, (tuple, list)):
        return [_key(part) for part in state]
    return bytes(state) if hasattr(state, "__array_interface__") else state


def _stream_holder(get: Callable[[Any], Any], put: Callable[[Any, Any], Any]) -> Holder:
    def put_back(thing: Any, saved: Stream) -> None:
        if Stream(get(thing)) != saved:
            put(thing, saved.state)

    return Holder(lambda thing: Stream(get(thing)), put_back, _one_part, has_inside=False)


def _dict_parts(saved: list[tuple[Any, Any]]) -> Iterator[Part]:
    yield from ((step(key), value) for key, value in saved)
    yield from ((".key", key) for key, _ in saved if isinstance(key, torch.Tensor))


_sequence = Holder(list, _put_back_list, _list_parts)
_HOLDERS: list[tuple[Any, Holder]] = [
    (dict, Holder(_save_dict, _put_back_dict, _dict_parts)),
    ((list, collections.deque), _sequence),
    (set, Holder(list, _put_back_set, _set_parts)),
    (bytearray, Holder(bytes, _put_back_bytes, _one_part, has_inside=False)),
    (types.CellType, Holder(_save_cell, _put_back_cell, _one_part)),
    (Binding, Holder(_save_binding, _put_back_binding, _one_part)),
    (Attributes, Holder(_save_attributes, _put_back_attributes, _attribute_parts)),
    (Slots, Holder(_save_slots, _put_back_slots, _slot_parts)),
    (ClassBody, Holder(_save_class, _put_back_class, _class_parts)),
    ((io.StringIO, io.BytesIO), Holder(_save_text, _put_back_text, _text_parts, has_inside=False)),
    (torch.Generator, _stream_holder(torch.Generator.get_state, torch.Generator.set_state)),
    (random.Random, _stream_holder(random.Random.getstate, random.Random.setstate)),
]


def _numpy_holder(thing: Any) -> Holder | None:
    """NumPy's arrays and generators; NumPy is not imported for the sake of asking."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None
    if isinstance(thing, numpy.ndarray):
        return Holder(lambda array: array.copy(), _put_back_array, _one_part, has_inside=False)
    if isinstance(thing, numpy.random.Generator):
        return _stream_holder(
            lambda stream: stream.bit_generator.state,
            lambda stream, state: setattr(stream.bit_generator, "state", state),
        )
    if isinstance(thing, numpy.random.RandomState):
        return _stream_holder(lambda s: s.get_state(), lambda s, state: s.set_state(state))
    return None


def _put_back_array(array: Any, saved: Any) -> None:
    if array.tobytes() != saved.tobytes():
        with contextlib.suppress(ValueError):  # Read-only: then another view of it was written to.
            array[...] = saved


def streams() -> dict[str, Stream]:
    """State of the random streams of the whole process, by name."""
    found: dict[str, Any] = {"torch": torch.get_rng_state(), "random": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    if numpy := sys.modules.get("numpy.random"):
        found["numpy"] = numpy.get_state()
    return {name: Stream(state) for name, state in found.items()}


def set_streams(saved: dict[str, Stream]) -> None:
    put = {
        "torch": torch.set_rng_state,
        "random": random.setstate,
        "cuda": torch.cuda.set_rng_state_all,
        "numpy": lambda state: sys.modules["numpy.random"].set_state(state),
    }
    for name, stream in streams().items():
        if name in saved and stream != saved[name]:
            put[name](saved[name].state)
