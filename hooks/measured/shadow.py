"""Shadows every compiled callable with eager; loaded once torch's compiler is.

`torch.compile` stays the original object. The shadow stands in front of the function that Dynamo
returns for a frame, for a module's call, for an optimizer's step: it runs the eager original first,
puts the state back, runs the compiled code, and compares. Types, signatures, attributes and graph
counts are what they are without it, and when another compile traces through, Dynamo follows the
attributes to the original function and never sees the shadow.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from measured import compare, events, gradients, twin
from measured.again import EagerAgain
from measured.constants import AUDIT_SECONDS, FIRST_CALLS
from measured.record import Call, Difference


class _Thread(threading.local):
    checking = False
    """A shadowed call is under way: calls inside it belong to it."""
    entered = 0
    """How many times this thread has entered compiled code."""


_thread = _Thread()
_one_check_at_a_time = threading.RLock()
"""A twin is silent and changes state, for the whole process, until it is over."""
_callables = itertools.count()


def count_entries(output_graph: ModuleType) -> None:
    """Let every graph that a backend compiled say when it runs."""
    call_user_compiler = output_graph.OutputGraph.call_user_compiler

    @functools.wraps(call_user_compiler)
    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = call_user_compiler(self, *args, **kwargs)

        @functools.wraps(compiled)
        def entered(*args: Any, **kwargs: Any) -> Any:
            _thread.entered += 1
            return compiled(*args, **kwargs)

        return entered

    output_graph.OutputGraph.call_user_compiler = counted


def shadow_what_dynamo_returns(eval_frame: ModuleType, log: events.Log) -> None:
    """Put a shadow in front of every function that Dynamo returns for a compiled callable."""
    context = eval_frame._TorchDynamoContext
    wrap = context.__call__

    @functools.wraps(wrap)
    def wrap_and_shadow(self: Any, fn: Any) -> Any:
        compiled = wrap(self, fn)
        original = getattr(compiled, "_torchdynamo_orig_callable", None)
        if not isinstance(compiled, FunctionType) or original is None:
            return compiled
        return _shadow(compiled, original, log)

    context.__call__ = wrap_and_shadow


def _shadow(compiled: FunctionType, original: Callable[..., Any], log: events.Log) -> FunctionType:
    import torch

    auditor = _Auditor(compiled, original, log)

    # wraps() copies the attributes by which Dynamo finds the original when it traces a call.
    @functools.wraps(compiled)
    def shadowed(*args: Any, **kwargs: Any) -> Any:
        if twin.is_running():
            return original(*args, **kwargs)
        if _thread.checking or torch.compiler.is_compiling():
            return compiled(*args, **kwargs)
        # The caller may itself be running under Dynamo: nothing of the audit is to be traced.
        prior = set_eval_frame(None)
        try:
            return auditor.call(args, kwargs)
        finally:
            set_eval_frame(prior)

    del shadowed.__wrapped__
    if hasattr(compiled, "__wrapped__"):
        shadowed.__wrapped__ = compiled.__wrapped__
    shadowed._torchdynamo_wrapper_id = id(shadowed)
    torch._dynamo.eval_frame.skip_code(shadowed.__code__)
    return shadowed


@dataclasses.dataclass
class _Outcome:
    result: Any = None
    error: BaseException | None = None


@dataclasses.dataclass
class _TwinRun:
    """What the eager run of a call gave, and the state before and after it."""

    outcome: _Outcome
    before: twin.Snapshot
    after: twin.Snapshot
    given: twin.Arguments
    modes: twin.Modes


class _Auditor:
    """Decides which calls of one compiled callable are shadowed, shadows them, and reports."""

    def __init__(
        self, compiled: FunctionType, original: Callable[..., Any], log: events.Log
    ) -> None:
        self._compiled = compiled
        self._original = original
        self._log = log
        self._name = _name_of(original)
        self._index = next(_callables)
        self._calls = 0
        self._kinds: Counter[Any] = Counter()
        self._seconds = 0.0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._calls += 1
        _count_call(self._log)
        if not self._is_due(args, kwargs):
            return self._compiled(*args, **kwargs)
        _thread.checking = True
        start = time.perf_counter()
        try:
            with _one_check_at_a_time:
                outcome = self._check(args, kwargs)
        finally:
            _thread.checking = False
            self._seconds += time.perf_counter() - start
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def _is_due(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        kind = _kind(self._original, args, kwargs)
        self._kinds[kind] += 1
        seen = self._kinds[kind]
        if self._seconds > AUDIT_SECONDS:
            return seen == 1
        return seen <= FIRST_CALLS or seen & (seen - 1) == 0

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Outcome:
        number = self._calls
        # What goes wrong in the audit is the audit's: the program goes on, and the build fails.
        try:
            twin_run = self._run_twin(args, kwargs)
        except twin.TooLarge as error:
            self._tell(number, "not comparable", detail=str(error))
            return _run(self._compiled, args, kwargs)
        except Exception as error:
            self._tell(number, "audit failed", detail=_describe(error))
            return _run(self._compiled, args, kwargs)
        entered = _thread.entered
        compiled = _run(self._compiled, args, kwargs)
        try:
            self._judge(number, twin_run, compiled, args, kwargs, entered)
        except Exception as error:
            self._tell(number, "audit failed", detail=_describe(error))
        return compiled

    def _judge(
        self,
        number: int,
        twin_run: _TwinRun,
        compiled: _Outcome,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        entered: int,
    ) -> None:
        eager, before = twin_run.outcome, twin_run.before
        if compiled.error is not None or eager.error is not None:
            self._judge_errors(number, eager, compiled)
            return
        if _thread.entered == entered:
            self._tell(number, "ran eager", detail="no compiled code was entered")
            return
        after = twin.Snapshot(before.reached)
        reference = EagerAgain(self._original, before, after, args, kwargs, twin_run.modes)
        report = compare.trees(eager.result, compiled.result, "result", reference)
        eager_state = twin_run.after.state() | twin_run.given.state()
        report.merge(_compare_states(eager_state, after.state(), reference))
        self._tell(number, "agrees", report, detail=reference.failure)
        self._watch_gradients(number, twin_run, compiled, args, kwargs)

    def _run_twin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _TwinRun:
        """Run eager, and leave everything as it was."""
        reached = twin.reach(self._original, args, kwargs)
        before, modes = twin.Snapshot(reached), twin.Modes()
        try:
            given = twin.stand_ins(reached, args, kwargs)
            with twin.eagerly(), modes.again(backward=False):
                outcome = _run(self._original, given.args, given.kwargs)
            after = twin.Snapshot(reached)
        finally:
            stuck = before.restore()
        if stuck:
            raise RuntimeError(
                f"eager wrote in place to {', '.join(stuck)}, whose history can not be put back"
            )
        return _TwinRun(outcome, before, after, given, modes)

    def _judge_errors(self, number: int, eager: _Outcome, compiled: _Outcome) -> None:
        if compiled.error is not None and _is_refusal(compiled.error):
            if eager.error is None:
                self._tell(number, "refused", detail=_describe(compiled.error))
            else:  # Dynamo meets while tracing the error that eager meets while running.
                self._tell(number, "agrees", detail=f"both raise: {_describe(eager.error)}")
            return
        if eager.error is None or compiled.error is None:
            kind = f"exception-only-in-{'compiled' if eager.error is None else 'eager'}"
        elif type(eager.error) is not type(compiled.error):
            kind = "exception-type"
        else:
            self._tell(number, "agrees", detail=f"both raise: {_describe(eager.error)}")
            return
        difference = Difference(
            kind=kind,
            path="call",
            message="one raises and the other does not"
            if "only" in kind
            else "the two raise different exceptions",
            eager=_describe(eager.error),
            compiled=_describe(compiled.error),
        )
        self._tell(number, "diverges", differences=[difference])

    def _watch_gradients(
        self,
        number: int,
        twin_run: _TwinRun,
        compiled: _Outcome,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Compare what the program's first backward pass sends through this call."""
        before = twin_run.before
        reached = before.reached
        twin_outputs = gradients.entries(twin_run.outcome.result, reached)
        outputs = gradients.entries(compiled.result, reached)
        shared = [path for path in outputs if path in twin_outputs]
        if not shared:
            return
        tensors = dict(reached.tensors.values())
        inputs = gradients.edges_of(tensors)
        twin_inputs = gradients.edges_of(tensors | twin_run.given.leaves)

        def compare_gradients(
            arrived: dict[str, torch.Tensor], sent: dict[str, torch.Tensor], asked: set[str]
        ) -> None:
            with _one_check_at_a_time:
                try:
                    self._tell(number, "agrees", *judge_gradients(arrived, sent, asked))
                except Exception as error:
                    self._tell(number, "audit failed", detail=f"gradients: {_describe(error)}")

        def judge_gradients(
            arrived: dict[str, torch.Tensor], sent: dict[str, torch.Tensor], asked: set[str]
        ) -> tuple[compare.Report, list[Difference], str]:
            after = twin.Snapshot(reached)
            # Eager's graph saved tensors as eager left them, with their versions.
            twin_run.after.restore()
            try:
                with twin.eagerly():
                    expected = gradients.of_twin(
                        {path: twin_outputs[path] for path in shared}, twin_inputs, arrived
                    )
            finally:
                after.restore()
            reference = EagerAgain(
                self._original, before, after, args, kwargs, twin_run.modes, arrived
            )
            expected = {path: grad for path, grad in expected.items() if path in asked}
            report = _compare_gradients(expected, sent, reference)
            return report, [], reference.failure

        gradients.watch({path: outputs[path] for path in shared}, inputs, compare_gradients)

    def _tell(
        self,
        number: int,
        verdict: str,
        report: compare.Report | None = None,
        differences: list[Difference] | None = None,
        detail: str = "",
    ) -> None:
        found = report.differences if report else differences or []
        self._log.write(
            events.Called(
                os.getpid(),
                Call(
                    process=0,
                    callable=self._name,
                    callable_index=self._index,
                    number=number,
                    verdict="diverges" if found else verdict,
                    differences=found[:20],
                    max_ulp=report.max_ulp if report else 0.0,
                    rule=report.rule if report else "equal",
                    detail=detail,
                ),
            )
        )


def _run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Outcome:
    try:
        return _Outcome(result=function(*args, **kwargs))
    except Exception as error:
        return _Outcome(error=error)


def _compare_states(
    eager: dict[str, Any], compiled: dict[str, Any], reference: compare.Reference
) -> compare.Report:
    report = compare.Report()
    for path in sorted(eager.keys() | compiled.keys()):
        if path in eager and path in compiled:
            report.merge(compare.trees(eager[path], compiled[path], path, reference))
        else:
            report.differences.append(
                Difference(
                    kind="structure",
                    path=path,
                    message="after the call only one of the two has it",
                    eager="present" if path in eager else "absent",
                    compiled="present" if path in compiled else "absent",
                )
            )
    return report


def _compare_gradients(
    eager: dict[str, torch.Tensor],
    compiled: dict[str, torch.Tensor],
    reference: compare.Reference,
) -> compare.Report:
    report = compare.Report()
    for path in sorted(eager.keys() | compiled.keys()):
        known = eager.get(path, compiled.get(path))
        # No gradient and a gradient of zeros are the same to the optimizer step that follows.
        zeros = torch.zeros_like(known)
        report.merge(
            compare.tensors(
                _contiguous(eager.get(path, zeros)),
                _contiguous(compiled.get(path, zeros)),
                f"gradient of {path}",
                reference,
            )
        )
    return report


def _contiguous(grad: torch.Tensor) -> torch.Tensor:
    """A gradient's strides are autograd's choice, and AccumulateGrad normalises them."""
    return (grad.to_dense() if grad.is_sparse else grad).contiguous()


def _is_refusal(error: BaseException) -> bool:
    """Whether compiling failed, as opposed to running what was compiled."""
    return any(
        kind.__module__.startswith(("torch._dynamo", "torch._inductor", "torch.fx"))
        for kind in type(error).__mro__
    )


def _describe(error: BaseException | None) -> str:
    if error is None:
        return "no exception"
    return f"{type(error).__name__}: {str(error).split(chr(10), 1)[0][:200]}"


def _name_of(function: Callable[..., Any]) -> str:
    owner = twin.owner_of(function)
    if owner is not None and not isinstance(owner, ModuleType):
        return type(owner).__name__
    return getattr(function, "__qualname__", repr(function))


def _kind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What makes one call a different one from another for the compiler."""
    owner = twin.owner_of(function)
    return (
        tuple((path, _kind_of_leaf(leaf)) for path, leaf in compare.leaves((args, kwargs), "")),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_default_dtype(),
        getattr(owner, "training", None),
    )


def _kind_of_leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (type(leaf), leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
    return type(leaf)


_total = 0


def _count_call(log: events.Log) -> None:
    """Keep the parent's count of calls right without an event for each of 100 000 calls."""
    global _total
    _total += 1
    if _total & (_total - 1) == 0:
        tell_total(log)


def tell_total(log: events.Log) -> None:
    if _total:
        log.write(events.Counted(os.getpid(), _total))
