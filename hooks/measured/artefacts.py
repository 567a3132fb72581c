"""Audits what is compiled ahead of time: exported programs, AOTInductor packages, `aot_compile`.

Such an artefact is an object of its own, which no longer knows the module or function that it was
made from. So it is noted when it is made, and every call of the artefact is audited against that.
Objects hold what they were made from; files are known by their content, and hold nothing. The
functions and methods that are replaced here keep name, signature and documentation, and the objects
of the program are not touched.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import types
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from measured import auditor, events, stages, tracing, twin

UNKNOWN = "what it was made from is not known in this process"
GONE = "what it was made from does not exist any more"


class _ByIdentity:
    """Something about each of some objects, for as long as the object lives."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def set(self, thing: Any, value: Any) -> None:
        known = self._known
        if id(thing) not in known:
            weakref.finalize(thing, known.pop, id(thing), None).atexit = False
        known[id(thing)] = value

    def get(self, thing: Any) -> Any:
        return self._known.get(id(thing))


@dataclasses.dataclass(frozen=True)
class _Origin:
    """What an artefact was made from."""

    function: Callable[..., Any] | None
    """None once it is gone."""
    state: tuple[tuple[str, weakref.ref[torch.Tensor], int], ...] = ()
    """Parameters and buffers, with their versions, of which a package has a copy of its own."""


_origins = _ByIdentity()
_audits = _ByIdentity()
_plain_call_of_graph_module = torch.fx.graph_module._WrappedCall.__call__
_of_files: dict[tuple[str, str], tuple[weakref.ref[Any], _Origin]] = {}
"""(content, name of the model in it) -> what it was made from."""
_of_compiled_files: dict[str, _Origin] = {}
"""A file that AOTInductor wrote, to be packed into a package later -> what it was made from."""


# What an artefact was made from.


def note_exports(trace: ModuleType) -> None:
    """Note of which module each exported program is made, and of which program another one."""

    def noted(export: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(export)
        def exported(mod: Any, *args: Any, **kwargs: Any) -> Any:
            program = export(mod, *args, **kwargs)
            _origins.set(program, _origins.get(mod) or _Origin(mod))
            return program

        return exported

    trace._export = noted(trace._export)
    programs = torch.export.exported_program
    decompose = programs._decompose_exported_program

    @functools.wraps(decompose)
    def decomposed(program: Any, *args: Any, **kwargs: Any) -> Any:
        other = decompose(program, *args, **kwargs)
        if (origin := _origins.get(program)) is not None:
            _origins.set(other, origin)
        return other

    programs._decompose_exported_program = decomposed


def note_modules_of_programs(unlift: ModuleType, log: events.Log) -> None:
    """Note of which program each module is made, and audit the module's calls."""
    make = unlift._unlift_exported_program_lifted_states

    @functools.wraps(make)
    def made(ep: Any, *args: Any, **kwargs: Any) -> Any:
        module = make(ep, *args, **kwargs)
        origin = _origins.get(ep)
        if origin is not None:
            _origins.set(module, origin)
        _audits.set(module, _of_module(module, origin, log))
        return module

    unlift._unlift_exported_program_lifted_states = made
    _audit_calls_of_graph_modules(_audits)


def compile_ahead(compiler: Callable[..., Any], gm: Any, *args: Any, **kwargs: Any) -> Any:
    """Let AOTInductor write its files, and note from which module they come."""
    origin = _origins.get(gm) or _Origin(gm)
    files = compiler(gm, *args, **kwargs)
    # Compiling raises the versions of buffers that are written to.
    state = tuple(
        (name, weakref.ref(tensor), tensor._version)
        for name, tensor in _state_of(origin.function).items()
    )
    for file in [files] if isinstance(files, str) else files:
        if isinstance(file, str):
            _of_compiled_files[file] = dataclasses.replace(origin, state=state)
    return files


def note_packages(package: ModuleType, log: events.Log) -> None:
    """Note what is written to a file, and know it when it is read; audit calls of packages."""
    write, read = package.package_pt2, package.load_pt2

    @functools.wraps(write)
    def written(f: Any, *args: Any, **kwargs: Any) -> Any:
        written_to = write(f, *args, **kwargs)
        programs = kwargs.get("exported_programs") or {}
        compiled = kwargs.get("aoti_files") or {}
        if not isinstance(programs, dict):
            programs = {"model": programs}
        if not isinstance(compiled, dict):
            compiled = {"model": compiled}
        found = {name: _origins.get(program) for name, program in programs.items()}
        for name, files in compiled.items():
            found[name] = next(filter(None, map(_of_compiled_files.get, map(str, files))), None)
        content = _content_of(f)
        for name, origin in found.items():
            if origin is not None:
                _remember(content, name, origin)
        return written_to

    @functools.wraps(read)
    def loaded(f: Any, *args: Any, **kwargs: Any) -> Any:
        contents = read(f, *args, **kwargs)
        content = _content_of(f)
        for name, thing in (contents.exported_programs | contents.aoti_runners).items():
            if (origin := _recall(content, name)) is not None:
                _origins.set(thing, origin)
        return contents

    package.package_pt2, package.load_pt2 = written, loaded

    def find(model: Any, plain: Callable[..., Any]) -> _Audited:
        return _of_package(model, plain, _origins.get(model), log)

    _audit_calls(package.AOTICompiledModel, find, _audits)


def note_functions(aot_compile: ModuleType, log: events.Log) -> None:
    """Note of which function each one is made that is compiled ahead of time; audit its calls."""
    make = aot_compile.aot_compile_fullgraph
    kind = aot_compile.AOTCompiledFunction
    serialize, deserialize = kind.serialize.__func__, kind.deserialize.__func__

    @functools.wraps(make)
    def made(model: Any, *args: Any, **kwargs: Any) -> Any:
        from torch._dynamo.convert_frame import get_traced_fn

        # Its graph is no cached one, but without this cache it can not be written to a file.
        with torch._functorch.config.patch(enable_autograd_cache=True):
            compiled = make(model, *args, **kwargs)
        _origins.set(compiled, _Origin(get_traced_fn(model)[0]))
        return compiled

    @functools.wraps(serialize)
    def serialized(cls: type, fn: Any, *args: Any, **kwargs: Any) -> Any:
        result = serialize(cls, fn, *args, **kwargs)
        if (origin := _origins.get(fn)) is not None:
            _remember(_digest(result.serialized_data), "", origin)
        return result

    @functools.wraps(deserialize)
    def deserialized(cls: type, data: bytes, *args: Any, **kwargs: Any) -> Any:
        compiled = deserialize(cls, data, *args, **kwargs)
        if (origin := _recall(_digest(data), "")) is not None:
            _origins.set(compiled, origin)
        return compiled

    aot_compile.aot_compile_fullgraph = made
    kind.serialize, kind.deserialize = classmethod(serialized), classmethod(deserialized)

    def of_function(compiled: Any, plain: Callable[..., Any]) -> _Audited:
        origin = _origins.get(compiled)
        return _audited(compiled, plain, _obstacle_of(origin) or origin.function, log)

    def of_module(compiled: Any, plain: Callable[..., Any]) -> _Audited:
        return _audited(compiled, plain, compiled.model.forward, log)

    _audit_calls(kind, of_function, _audits)
    _audit_calls(aot_compile.AOTCompiledModel, of_module, _audits)


def _remember(content: str, name: str, origin: _Origin) -> None:
    """Hold weakly what a file was made from: nobody can say when the file is no longer needed."""
    weak = weakref.ref(origin.function)
    _of_files[content, name] = weak, dataclasses.replace(origin, function=None)


def _recall(content: str, name: str) -> _Origin | None:
    weak, origin = _of_files.get((content, name), (None, None))
    if weak is None or origin is None:
        return None
    return dataclasses.replace(origin, function=weak())


def _content_of(file: Any) -> str:
    if isinstance(file, (str, os.PathLike)):
        if os.path.isdir(file):
            return ""
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    place = file.tell()
    file.seek(0)
    try:
        return _digest(file.read())
    finally:
        file.seek(place)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Eager in place of an artefact.


def _obstacle_of(origin: _Origin | None) -> str:
    if origin is None:
        return UNKNOWN
    return GONE if origin.function is None else ""


def _state_of(function: Any) -> dict[str, torch.Tensor]:
    if not isinstance(function, torch.nn.Module):
        return {}
    return dict(function.named_parameters(remove_duplicate=False)) | dict(
        function.named_buffers(remove_duplicate=False)
    )


def _of_module(module: Any, origin: _Origin | None, log: events.Log) -> _Audited:
    """Eager is the original module, run on the parameters and buffers of the program's module."""
    own = _same_state(module)

    def plain(module: Any, *args: Any, **kwargs: Any) -> Any:
        return _plain_call_of_graph_module(module._wrapped_call, module, *args, **kwargs)

    if why := _obstacle_of(origin):
        return _audited(module, plain, why, log)
    original = origin.function

    def eager(*args: Any, **kwargs: Any) -> Any:
        theirs = _state_of(original)
        mine = {name: tensor for name, tensor in _state_of(own).items() if name in theirs}
        given = dict(mine)
        result = _run_on(original, given, args, kwargs)
        _write_back(mine, given)
        return result

    eager._torchdynamo_orig_callable = types.MethodType(original.forward, own)
    return _audited(module, plain, _named(eager, original), log)


def _of_package(
    model: Any, plain: Callable[..., Any], origin: _Origin | None, log: events.Log
) -> _Audited:
    """Eager is the original module, while it is as it was when the package was made.

    A package has its own copy of every parameter and buffer, which can not be read.
    """
    if why := _obstacle_of(origin):
        return _audited(model, plain, why, log)
    original = origin.function

    wrote = False

    def eager(*args: Any, **kwargs: Any) -> Any:
        nonlocal wrote
        copies = {name: buffer.clone() for name, buffer in original.named_buffers()}
        bound = dict(copies)
        with torch.no_grad():  # Packages are for inference: what they give has no history.
            result = _run_on(original, bound, args, kwargs)
        wrote = wrote or any(
            bound[name] is not copy or copy._version for name, copy in copies.items()
        )
        return result

    def obstacle() -> str:
        if wrote:
            return "the package keeps to itself what it has written"
        now = _state_of(original)
        for name, tensor, version in origin.state:
            if now.get(name) is not tensor() or now[name]._version != version:
                return f"{name} is not what it was when the package was made"
        return ""

    eager._torchdynamo_orig_callable = original.forward
    return _audited(model, plain, _named(eager, original), log, obstacle)


def _run_on(
    module: torch.nn.Module,
    state: dict[str, torch.Tensor],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a module on other parameters and buffers; those that it binds anew replace them."""
    with torch.nn.utils.stateless._reparametrize_module(module, state):
        return module(*args, **kwargs)


def _same_state(module: torch.nn.Module) -> torch.nn.Module:
    """The parameters and buffers of a module, now and later, without a reference to the module."""
    same = torch.nn.Module()
    for name in ("_parameters", "_buffers", "_non_persistent_buffers_set"):
        vars(same)[name] = vars(module)[name]
    for name, inner in module.named_children():
        same._modules[name] = _same_state(inner)
    return same


@torch.no_grad()
def _write_back(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> None:
    """A buffer that eager binds to another tensor is one that an exported program writes to."""
    for name, tensor in before.items():
        if after[name] is not tensor:
            tensor.copy_(after[name])


def _named(function: Callable[..., Any], original: Any) -> Callable[..., Any]:
    function.__qualname__ = type(original).__qualname__
    return function


# Calls.


class _Audited(NamedTuple):
    """How the calls of one artefact are audited."""

    audit: auditor.Auditor
    eager: Callable[..., Any] | None
    """None where it is not known what the artefact was made from."""


def _audited(
    artefact: Any,
    plain: Callable[..., Any],
    eager: Callable[..., Any] | str,
    log: events.Log,
    obstacle: Callable[[], str] = str,
) -> _Audited:
    """`plain(artefact, ...)` is the call without the audit; `eager` may be why there is none."""
    weak = weakref.ref(artefact)

    def compiled(*args: Any, **kwargs: Any) -> Any:
        auditor.thread.entered += 1
        return plain(weak(), *args, **kwargs)

    if isinstance(eager, str):
        compiled.__qualname__ = type(artefact).__qualname__
        return _Audited(auditor.Auditor(compiled, compiled, log, stages.OWN, lambda: eager), None)
    return _Audited(auditor.Auditor(compiled, eager, log, stages.OWN, obstacle), eager)


def _audit_calls(
    kind: type, find: Callable[[Any, Callable[..., Any]], _Audited], audits: _ByIdentity
) -> None:
    """Put the audit in front of `kind.__call__`; `find` makes it at the first call."""
    call = kind.__call__

    @functools.wraps(call)
    def audited(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_traced():
            return call(self, *args, **kwargs)
        if audits.get(self) is None:
            audits.set(self, find(self, call))
        return _through(audits.get(self), functools.partial(call, self), args, kwargs)

    torch._dynamo.eval_frame.skip_code(audited.__code__)
    kind.__call__ = audited


def _audit_calls_of_graph_modules(audits: _ByIdentity) -> None:
    """Put the audit in front of the calls of those modules of graphs that have one.

    Such a module has a class of its own, whose `__call__` is made anew with every new graph.
    """
    wrapped = torch.fx.graph_module._WrappedCall
    call = wrapped.__call__

    @functools.wraps(call)
    def audited(self: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        known = audits.get(obj)
        if known is None or _is_traced():
            return call(self, obj, *args, **kwargs)
        return _through(known, functools.partial(call, self, obj), args, kwargs)

    torch._dynamo.eval_frame.skip_code(audited.__code__)
    wrapped.__call__ = audited


def _through(
    known: _Audited, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if twin.is_running() and known.eager is not None:
        return known.eager(*args, **kwargs)
    if twin.is_running() or auditor.thread.checking:
        return plain(*args, **kwargs)
    # The caller may itself be running under Dynamo: nothing of the audit is to be traced.
    prior = set_eval_frame(None)
    try:
        return known.audit.call(args, kwargs)
    finally:
        set_eval_frame(prior)


def _is_traced() -> bool:
    """Whether somebody records what is called here: nothing is run, then."""
    keys = torch._C._TorchDispatchModeKey
    return tracing.is_tracing() or any(
        torch._C._get_dispatch_mode(key) is not None
        for key in (keys.FAKE, keys.PROXY, keys.FUNCTIONAL)
    )
