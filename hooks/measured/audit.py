"""Runs inside the audit child: shadow every compiled callable with eager.

`torch.compile` stays the original object. The audit takes the function that Dynamo returns for a
frame, for a module's call, for an optimizer's step, and puts in front of it one that runs the
eager original first, puts the state back, runs the compiled code, and compares. Types,
signatures, attributes and graph counts are what they are without it, and when another compile
traces through, Dynamo follows the attributes to the original function and never sees the shadow.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from measured import events
from measured.constants import AUDIT_SECONDS, FIRST_CALLS
from measured.record import Call, Difference

if TYPE_CHECKING:
    import torch

    from measured import compare, twin


class _Thread(threading.local):
    in_twin = False
    """The eager original is running: nested compiled callables run eagerly too."""
    checking = False
    """A shadowed call is under way: calls inside it belong to it."""
    entered = 0
    """How many times this thread has entered compiled code."""


_thread = _Thread()
_callables = itertools.count()


def hooks(log: events.Log, *, fallback_random: bool) -> dict[str, Callable[[ModuleType], None]]:
    """What to do when which module has been imported."""
    atexit.register(_tell_total, log)
    installed = {
        "torch._dynamo.eval_frame": lambda module: shadow_what_dynamo_returns(module, log),
        "torch._dynamo.output_graph": count_entries,
    }
    if fallback_random:
        installed["torch._inductor.config"] = _use_eager_random_streams
    return installed


def _use_eager_random_streams(config: ModuleType) -> None:
    config.fallback_random = True


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
    from torch._C._dynamo.eval_frame import set_eval_frame

    auditor = _Auditor(compiled, original, log)

    # wraps() copies the attributes by which Dynamo finds the original when it traces a call.
    @functools.wraps(compiled)
    def shadowed(*args: Any, **kwargs: Any) -> Any:
        if _thread.in_twin:
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
        from measured import compare, twin

        number = self._calls
        try:
            reached = twin.reach(self._original, args, kwargs)
        except twin.TooLarge as error:
            self._tell(number, "not comparable", detail=str(error))
            return _run(self._compiled, args, kwargs)
        before = twin.Snapshot(reached)
        eager = self._run_twin(args, kwargs)
        eager_state = twin.Snapshot(reached).state()
        if stuck := before.restore():
            self._tell(
                number,
                "not comparable",
                detail=f"eager wrote in place to {', '.join(stuck)}, which has an autograd history",
            )
        entered = _thread.entered
        compiled = _run(self._compiled, args, kwargs)
        if stuck:
            return compiled
        if compiled.error is not None or eager.error is not None:
            self._judge_errors(number, eager, compiled)
            return compiled
        if _thread.entered == entered:
            self._tell(number, "ran eager", detail="no compiled code was entered")
            return compiled
        after = twin.Snapshot(reached)
        reference = _Reference(self, before, after, args, kwargs)
        report = compare.trees(eager.result, compiled.result, "result", reference)
        report.merge(_compare_states(eager_state, after.state(), reference))
        self._tell(number, "agrees", report, detail=reference.failure)
        self._watch_gradients(number, eager, compiled, before, args, kwargs)
        return compiled

    def _run_twin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Outcome:
        from measured import twin

        _thread.in_twin = True
        try:
            with twin.silence(), twin.keeping_modes():
                return _run(self._original, args, kwargs)
        finally:
            _thread.in_twin = False

    def _judge_errors(self, number: int, eager: _Outcome, compiled: _Outcome) -> None:
        if compiled.error is not None and _is_refusal(compiled.error):
            if eager.error is None:
                self._tell(number, "refused", detail=_describe(compiled.error))
            else:  # Dynamo meets while tracing the error that eager meets while running.
                self._tell(number, "agrees", detail=f"both raise: {_describe(eager.error)}")
            return
        if eager.error is None or compiled.error is None:
            kind = f"exception only in {'compiled' if eager.error is None else 'eager'}"
        elif type(eager.error) is not type(compiled.error):
            kind = "exception type"
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
        eager: _Outcome,
        compiled: _Outcome,
        before: twin.Snapshot,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Compare what the program's first backward pass sends through this call."""
        from measured import compare, gradients, twin

        reached = before.reached
        tensors = {path: tensor for path, tensor in reached.tensors.values()}
        inputs = gradients.edges_of(tensors)
        twin_outputs = _differentiable(eager.result, reached)
        outputs = _differentiable(compiled.result, reached)
        shared = [path for path in outputs if path in twin_outputs]
        if not shared:
            return

        def compare_gradients(
            arrived: dict[str, torch.Tensor], sent: dict[str, torch.Tensor]
        ) -> None:
            after = twin.Snapshot(reached)
            _thread.in_twin = True
            try:
                with twin.silence():
                    expected = gradients.of_twin(
                        {path: twin_outputs[path] for path in shared}, inputs, arrived
                    )
            finally:
                _thread.in_twin = False
                after.restore()
            reference = _Reference(self, before, after, args, kwargs, inputs, arrived)
            report = _compare_gradients(expected, sent, reference)
            self._tell(number, "agrees", report, detail=reference.failure)

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


class _Reference:
    """A float64 run of eager, made when the first tensor asks for it.

    It starts from the state before the call and leaves the state after it.
    """

    def __init__(
        self,
        auditor: _Auditor,
        before: twin.Snapshot,
        after: twin.Snapshot,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: dict[Any, str] | None = None,
        arrived: dict[str, torch.Tensor] | None = None,
    ) -> None:
        self._auditor = auditor
        self._before = before
        self._after = after
        self._args = args
        self._kwargs = kwargs
        self._inputs = inputs or {}
        self._arrived = arrived or {}
        self.failure = ""

    @functools.cached_property
    def _run(self) -> dict[str, torch.Tensor]:
        import torch

        from measured import compare, gradients, reference, twin

        precise: dict[str, torch.Tensor] = {}
        mode = reference.Float64Shadow()
        self._before.restore()
        _thread.in_twin = True
        try:
            grad = torch.enable_grad() if self._arrived else contextlib.nullcontext()
            with twin.silence(), twin.keeping_modes(), grad:
                with mode:
                    result = self._auditor._original(*self._args, **self._kwargs)
                for path, leaf in compare.leaves(result, "result"):
                    if isinstance(leaf, torch.Tensor):
                        precise[path] = mode.shadow(leaf.detach()).clone()
                for path, tensor in self._before.reached.tensors.values():
                    precise[path] = mode.shadow(tensor.detach()).clone()
                if self._arrived:
                    outputs = _differentiable(result, self._before.reached)
                    with mode:
                        sent = gradients.of_twin(outputs, self._inputs, self._arrived)
                    for path, grad in sent.items():
                        precise[f"gradient of {path}"] = mode.shadow(grad).clone()
        except Exception as error:
            # No reference then: every float must pass by rule 1, and the record says why.
            self.failure = f"no float64 run of eager: {_describe(error)}"
        finally:
            _thread.in_twin = False
            self._after.restore()
        return precise

    def __call__(self, path: str) -> torch.Tensor | None:
        return self._run.get(path)


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Outcome:
    try:
        return _Outcome(result=function(*args, **kwargs))
    except Exception as error:
        return _Outcome(error=error)


def _differentiable(result: Any, reached: twin.Reach) -> dict[str, torch.Tensor]:
    """Outputs that a backward pass can enter this call through, by path."""
    import torch

    from measured import compare

    return {
        path: leaf
        for path, leaf in compare.leaves(result, "result")
        if isinstance(leaf, torch.Tensor)
        and leaf.grad_fn is not None
        and id(leaf) not in reached.tensors
    }


def _compare_states(
    eager: dict[str, Any], compiled: dict[str, Any], reference: compare.Reference
) -> compare.Report:
    from measured import compare

    report = compare.Report()
    for path in sorted(eager.keys() | compiled.keys()):
        if path in eager and path in compiled:
            report.merge(compare.trees(eager[path], compiled[path], path, reference))
        else:
            report.differences.append(
                Difference(
                    kind="structure",
                    path=path,
                    message=f"after the call only {'eager' if path in eager else 'compiled'} has it",
                )
            )
    return report


def _compare_gradients(
    eager: dict[str, torch.Tensor],
    compiled: dict[str, torch.Tensor],
    reference: compare.Reference,
) -> compare.Report:
    import torch

    from measured import compare

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
    return grad.contiguous()


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
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return type(owner).__name__
    return getattr(function, "__qualname__", repr(function))


def _kind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What makes one call a different one from another for the compiler."""
    import torch

    from measured import compare

    owner = getattr(function, "__self__", None)
    return (
        tuple(
            (path, _kind_of_leaf(leaf))
            for path, leaf in compare.leaves((args, kwargs), "")
        ),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_default_dtype(),
        getattr(owner, "training", None),
    )


def _kind_of_leaf(leaf: Any) -> Any:
    import torch

    if isinstance(leaf, torch.Tensor):
        return (type(leaf), leaf.shape, leaf.dtype, leaf.device, leaf.requires_grad)
    return type(leaf)


_total = 0


def _count_call(log: events.Log) -> None:
    """Keep the parent's count of calls right without an event for each of 100 000 calls."""
    global _total
    _total += 1
    if _total & (_total - 1) == 0:
        _tell_total(log)


def _tell_total(log: events.Log) -> None:
    if _total:
        log.write(events.Counted(os.getpid(), _total))
