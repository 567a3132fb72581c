"""Audits the calls of one compiled callable: runs eager first, puts the state back, compares.

The program goes on with what compiled code gave it, whatever the verdict.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from measured import compare, events, gradients, modes, refusals, sight, twin
from measured.again import EagerAgain
from measured.due import Due
from measured.gradients import Edge, Entry, Flow
from measured.reach import NotComparable, owner_of, reach
from measured.record import RULES, Call, Difference
from measured.sight import Outcome, Sight
from measured.snapshot import Snapshot

MAX_DIFFERENCES = 20
"""Differences of one call that are written down."""


class _Thread(threading.local):
    checking = False
    """A shadowed call is under way: calls inside it belong to it."""
    entered = 0
    """How many times this thread has entered compiled code."""
    unchecked: Unchecked | None = None
    """The call under way, where it is made without a check."""


@dataclasses.dataclass(frozen=True)
class Unchecked:
    """A call that is not due, unless the compiler is asked for it before anything has run."""

    due: Due
    entered: int
    """How many times the thread had entered compiled code before."""


class CompilerAsked(BaseException):
    """Leaves an unchecked call for which no compiled code fits, before any of it has run."""


thread = _Thread()
_one_check_at_a_time = threading.RLock()
"""A twin is silent and changes state, for the whole process, until it is over."""
_callables = itertools.count()


@dataclasses.dataclass
class _Twin:
    """What the eager run of a call gave, and the state before and after it."""

    outcome: Outcome
    before: Snapshot
    after: Snapshot
    """State that eager left, to be put back for its backward pass."""
    sight: Sight
    caller: modes.Caller
    entries: dict[str, Entry]
    inputs: dict[Edge, str]
    program_inputs: dict[Edge, str]
    """The same inputs in the program's graph, as they were before the call."""


class Auditor:
    """Decides which calls of one compiled callable are checked, checks them, and reports."""

    def __init__(
        self,
        compiled: Callable[..., Any],
        original: Callable[..., Any],
        log: events.Log,
        stage: str,
        obstacle: Callable[[], str] = str,
    ) -> None:
        """`obstacle` says why the call that is due can not be compared, or nothing."""
        self._compiled = compiled
        self._original = original
        self._log = log
        self._stage = stage
        self._obstacle = obstacle
        self._name = _name_of(original)
        self._index = next(_callables)
        self._calls = 0
        self._due = Due(original)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as the program made it: what compiled code returns or raises."""
        self._calls += 1
        _count_call(self._log)
        if not self._due(args, kwargs):
            try:
                return self._unchecked(args, kwargs)
            except CompilerAsked:
                pass  # Then it is due, whatever it is like.
        thread.checking = True
        start = time.perf_counter()
        try:
            with _one_check_at_a_time:
                outcome = self._check(args, kwargs)
        finally:
            thread.checking = False
            self._due.took(time.perf_counter() - start)
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def _unchecked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outer, thread.unchecked = thread.unchecked, Unchecked(self._due, thread.entered)
        try:
            return self._compiled(*args, **kwargs)
        finally:
            thread.unchecked = outer

    def _check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
        number = self._calls
        # What goes wrong in the audit is the audit's: the program goes on, and the build fails.
        try:
            if torch._C._functorch.peek_interpreter_stack() is not None:
                raise NotComparable("called inside a function transform")
            if obstacle := self._obstacle():
                raise NotComparable(obstacle)
            eager = self._run_twin(args, kwargs)
        except NotComparable as error:
            self._tell(number, "not comparable", detail=str(error))
            return sight.run(self._compiled, args, kwargs)
        except Exception as error:
            self._tell(number, "audit failed", detail=_describe(error))
            return sight.run(self._compiled, args, kwargs)
        entered = thread.entered
        compiled = sight.run(self._compiled, args, kwargs)
        try:
            self._judge(number, eager, compiled, args, kwargs, thread.entered > entered)
        except Exception as error:
            self._tell(number, "audit failed", detail=_describe(error))
        return compiled

    def _run_twin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Twin:
        """Run eager, and leave everything as it was."""
        reached = reach(self._original, args, kwargs)
        before, caller = Snapshot(reached), modes.Caller()
        given = twin.stand_ins(reached, args, kwargs)
        tensors = dict(reached.tensors.values())
        inputs = gradients.edges_of(tensors | given.leaves)
        program_inputs = gradients.edges_of(tensors)
        try:
            with twin.eagerly(), caller.again(backward=False):
                outcome = sight.run(self._original, given.args, given.kwargs)
                now = reach(self._original, given.args, given.kwargs, given.originals)
                seen = sight.see(outcome, Snapshot(now, before), reached, given.originals)
            after = Snapshot(reached, before)
            entries = gradients.entries(outcome.result, now, reached.histories | given.histories)
        finally:
            stuck = before.restore()
        if stuck:
            raise RuntimeError(
                f"eager wrote in place to {', '.join(stuck)}, whose history can not be put back"
            )
        return _Twin(outcome, before, after, seen, caller, entries, inputs, program_inputs)

    def _judge(
        self,
        number: int,
        eager: _Twin,
        compiled: Outcome,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        entered: bool,
    ) -> None:
        errors = eager.outcome.error, compiled.error
        if _is_control_flow(compiled.error):
            self._tell(number, "not comparable", detail=f"left early: {_describe(compiled.error)}")
            return
        if compiled.error is not None and refusals.is_refusal(compiled.error):
            verdict = "refused"
            if eager.outcome.error is not None:
                # Dynamo meets while tracing the error that eager meets while running.
                verdict = "agrees"
            else:
                refusals.note(compiled.error)
            self._tell(number, verdict, detail=_describe(compiled.error))
            return
        if errors == (None, None) and not entered:
            self._tell(number, "ran eager", detail="no compiled code was entered")
            return
        before = eager.before
        now = reach(self._original, args, kwargs)
        after = Snapshot(before.reached, before)
        seen = sight.see(compiled, Snapshot(now, after), before.reached)

        def again(asked: dict[str, torch.Tensor | None]) -> EagerAgain:
            return EagerAgain(
                self._original, before, after, args, kwargs, eager.caller, asked, errors[0]
            )

        raised = _compare_errors(*errors)
        if raised is not None:
            if again({}).ends_again():
                self._tell(number, "diverges", compare.Report([raised]))
            else:
                self._tell(number, "not comparable", detail="eager does not end the same again")
            return
        others = sight.beside_values(eager.sight, seen)

        def compared(
            asked: set[str] | None = None, reference: compare.Reference | None = None
        ) -> compare.Report:
            sides = [eager.sight.places, seen.places]
            if asked is not None:
                # What agreed is let go of: a further run needs memory for itself.
                for places in sides:
                    for path in places.keys() - asked:
                        del places[path]
                before.let_go(after, eager.after)
            return compare.places(*sides, reference)

        report, detail = _compare(compared, again)
        report.differences += others
        if errors != (None, None):
            detail = f"both raise: {_describe(eager.outcome.error)}"
        self._tell(number, "agrees", report, detail)
        if errors == (None, None):
            histories = before.reached.histories
            outputs = gradients.entries(compiled.result, now, histories)
            self._watch_gradients(number, eager, outputs, args, kwargs)

    def _watch_gradients(
        self,
        number: int,
        eager: _Twin,
        outputs: dict[str, Entry],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Compare what the program's first backward pass sends through this call.

        Nothing here may hold a tensor that the call made: its graph holds this.
        """
        shared = {path: entry for path, entry in outputs.items() if path in eager.entries}
        if not shared:
            return
        original, before, twins_after, caller = (
            self._original, eager.before, eager.after, eager.caller
        )  # fmt: skip
        entries, inputs = eager.entries, eager.inputs
        parts: dict[str, Any] = {}

        def started() -> None:
            parts.update(sight.held(original, args, kwargs, before.reached))

        def judge(flow: Flow) -> tuple[compare.Report, str]:
            if flow.obstacle:
                raise NotComparable(f"its gradients were not compared: {flow.obstacle}")
            after = Snapshot(before.reached, before)
            changed = _changed(parts, sight.held(original, args, kwargs, before.reached))
            # Eager's graph saved tensors as eager left them, with their versions.
            twins_after.restore()
            try:
                earlier = sight.held(original, args, kwargs, before.reached)
                with twin.eagerly():
                    expected = gradients.of_twin(entries, inputs, flow.arrived)
                later = sight.held(original, args, kwargs, before.reached)
            finally:
                after.restore()
            report, detail = _compare(
                lambda asked=None, reference=None: gradients.compared(expected, flow, reference),
                lambda asked: EagerAgain(
                    original, before, after, args, kwargs, caller, asked, None, flow.arrived
                ),
            )
            report.differences += [
                Difference(
                    kind="value",
                    path=f"{path}, in the backward pass",
                    message="eager's backward pass changes it, and compiled code's does not",
                    eager=str(later.get(path, "absent")),
                    compiled=str(parts.get(path, "absent")),
                )
                for path in sorted(_changed(earlier, later) - changed)
            ]
            return report, detail

        def done(flow: Flow) -> None:
            with _one_check_at_a_time:
                try:
                    self._tell(number, "agrees", *judge(flow))
                except NotComparable as error:
                    self._tell(number, "not comparable", detail=str(error))
                except Exception as error:
                    self._tell(number, "audit failed", detail=f"gradients: {_describe(error)}")

        gradients.Watch(shared, eager.program_inputs, started, done)

    def _tell(
        self,
        number: int,
        verdict: str,
        report: compare.Report | None = None,
        detail: str = "",
    ) -> None:
        report = report or compare.Report()
        if report.differences:
            verdict = "diverges"
        elif report.unsettled and verdict == "agrees":
            verdict = "not comparable"
            detail = f"eager does not give the same again: {', '.join(report.unsettled[:5])}"
        self._log.write(
            events.Called(
                os.getpid(),
                Call(
                    process=0,
                    callable=self._name,
                    callable_index=self._index,
                    number=number,
                    verdict=verdict,
                    differences=report.differences[:MAX_DIFFERENCES],
                    max_ulp=report.max_ulp,
                    rule="none" if report.differences else report.rule,
                    detail=detail,
                    stage=self._stage,
                ),
            )
        )


def _compare(
    compared: Callable[..., compare.Report],
    again: Callable[[dict[str, torch.Tensor | None]], EagerAgain],
) -> tuple[compare.Report, str]:
    """Compare; and again, with further runs of eager, where something differs.

    Two steps, because further runs need to keep only what differs: `compared()` compares all,
    `compared(paths, reference)` may leave everything else out.
    """
    first = compared()
    if not first.differences:
        return first, ""
    paths = {difference.path for difference in first.differences}
    reference = again({path: first.suspects.get(path) for path in paths})
    final = compared(paths, reference)
    final.max_ulp = max(final.max_ulp, first.max_ulp)
    final.rule = max(final.rule, first.rule, key=RULES.index)
    return final, reference.failure


def _changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {
        path
        for path in before.keys() | after.keys()
        if path not in before or path not in after or _different(before[path], after[path])
    }


def _different(left: Any, right: Any) -> bool:
    return type(left) is not type(right) or left != right


def _compare_errors(
    eager: BaseException | None, compiled: BaseException | None
) -> Difference | None:
    if type(eager) is type(compiled):
        return None
    if eager is None or compiled is None:
        kind = f"exception-only-in-{'compiled' if eager is None else 'eager'}"
        message = "one raises and the other does not"
    else:
        kind, message = "exception-type", "the two raise different exceptions"
    return Difference(
        kind=kind,
        path="call",
        message=message,
        eager=_describe(eager),
        compiled=_describe(compiled),
    )


def _is_control_flow(error: BaseException | None) -> bool:
    """Checkpointing leaves a recomputation by an exception, once it has what it needs."""
    return type(error).__name__ == "_StopRecomputationError"


def _describe(error: BaseException | None) -> str:
    if error is None:
        return "no exception"
    lines = str(error).splitlines() or [""]
    # A backend that raised: what it raised stands below.
    told = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return f"{type(error).__name__}: {told[:200]}"


def _name_of(function: Callable[..., Any]) -> str:
    owner = owner_of(function)
    if owner is not None and not isinstance(owner, ModuleType):
        return type(owner).__name__
    return getattr(function, "__qualname__", repr(function))


_total = 0


def _count_call(log: events.Log) -> None:
    """Keep the parent's count of calls right without an event for each of 100 000 calls."""
    global _total
    _total += 1
    if _total & (_total - 1) == 0:
        tell_total(log)


def tell_total(log: events.Log) -> None:
    """Write how many calls of compiled callables there were in this process."""
    if _total:
        log.write(events.Counted(os.getpid(), _total))
