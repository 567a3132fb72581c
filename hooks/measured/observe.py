"""Runs inside the observed child: listen to the compiler and to torch's benchmark.

The listeners sit where Dynamo files its own metrics, after the work is done, and append to our
own log: `torch._dynamo.reset()`, `counters.clear()` and the 64-entry limit of Dynamo's list lose
nothing. Nothing is replaced on a path that a timed call takes.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from measured import events


def hooks(log: events.Log) -> dict[str, Callable[[ModuleType], None]]:
    """What to do when which module has been imported."""
    return {
        "torch._dynamo.utils": lambda module: listen_to_compiles(module, log),
        "torch._dynamo.output_graph": lambda module: listen_to_breaks(module, log),
        "torch._inductor.cpu_vec_isa": lambda module: _time_toolchain(module.VecISA, "check_build"),
        "torch._inductor.codecache": lambda module: _time_toolchain(module, "_precompile_header"),
        "torch._inductor.fx_passes.replace_random": lambda module: listen_to_draws(module, log),
        "torch.utils.benchmark.utils.common": lambda module: listen_to_timings(module, log),
    }


class _Toolchain:
    """Seconds that this process spent on what belongs to the machine and not to a model."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seconds = 0.0
        self.cpp_seconds = 0.0
        """What of it the C++ compiler took, which Dynamo's metrics count among all it took."""


_toolchain = _Toolchain()


def _time_toolchain(owner: Any, name: str) -> None:
    """Take the time of a function that prepares the toolchain. No call of compiled code enters
    it."""
    prepare = getattr(owner, name)

    @functools.wraps(prepare)
    def timed(*args: Any, **kwargs: Any) -> Any:
        from torch._dynamo import utils

        start, cpp = time.perf_counter(), _cpp_seconds(utils)
        try:
            return prepare(*args, **kwargs)
        finally:
            with _toolchain.lock:
                _toolchain.seconds += time.perf_counter() - start
                _toolchain.cpp_seconds += _cpp_seconds(utils) - cpp

    setattr(owner, name, timed)


def _cpp_seconds(utils: ModuleType) -> float:
    """What the C++ compiler has taken so far, by Dynamo's metrics."""
    return sum(utils.compilation_time_metrics.get("compile_file", ()))


def listen_to_compiles(utils: ModuleType, log: events.Log) -> None:
    """Write an event for each entry that Dynamo adds to its compilation metrics."""
    record = utils.record_compilation_metrics
    context = type(utils.get_metrics_context())
    enter = context.__enter__
    before = threading.local()

    def so_far() -> tuple[float, float]:
        """Seconds of the toolchain, and of the C++ compiler outside of it."""
        return _toolchain.seconds, _cpp_seconds(utils) - _toolchain.cpp_seconds

    def enter_and_note(self: Any) -> Any:
        # What is compiled outside of a compile, such as a probe, is none of its time.
        if not self.in_progress():
            before.seconds = so_far()
        return enter(self)

    def record_and_tell(*args: Any, **kwargs: Any) -> None:
        record(*args, **kwargs)
        metrics = utils.get_compilation_metrics()
        if metrics and not metrics[-1].is_runtime:
            start = getattr(before, "seconds", (0.0, 0.0))
            toolchain, cpp = (
                max(now - then, 0.0) for now, then in zip(so_far(), start, strict=True)
            )
            log.write(compiled(metrics[-1], round(cpp * 1e6), round(toolchain * 1e6)))

    context.__enter__ = enter_and_note
    utils.record_compilation_metrics = record_and_tell
    # The context of this thread exists already, and holds the function itself.
    utils.get_metrics_context()._on_exit = record_and_tell


def compiled(metrics: Any, cpp_us: int, toolchain_us: int) -> events.Compiled:
    """One `CompilationMetrics` as an event."""
    backward_us = metrics.backward_cumulative_compile_time_us or 0
    inductor_us = metrics.inductor_cumulative_compile_time_us or 0
    cache = "inductor_fx_local_cache_{0}_count", "aotautograd_local_cache_{0}_count"
    return events.Compiled(
        pid=os.getpid(),
        compile_id=metrics.compile_id or "",
        function=metrics.co_name or "",
        file=metrics.co_filename or "",
        line=metrics.co_firstlineno or 0,
        graph_ops=metrics.graph_op_count or 0,
        backward=bool(backward_us),
        recompile_reason=metrics.recompile_reason,
        failure=metrics.fail_type,
        failure_reason=headline(metrics.fail_reason or ""),
        failure_file=metrics.fail_user_frame_filename or "",
        failure_line=metrics.fail_user_frame_lineno or 0,
        entire_us=backward_us or metrics.dynamo_cumulative_compile_time_us or 0,
        backend_us=backward_us or metrics.aot_autograd_cumulative_compile_time_us or 0,
        inductor_us=inductor_us,
        cpp_us=min(cpp_us, inductor_us),
        toolchain_us=toolchain_us,
        cache_hits=sum(getattr(metrics, name.format("hit")) or 0 for name in cache),
        cache_misses=sum(getattr(metrics, name.format("miss")) or 0 for name in cache),
    )


def headline(message: str) -> str:
    """The first line of one of Dynamo's messages, and its explanation, without hints.

    >>> headline("Failed to trace\\n  Explanation: it is odd.\\n  Hint: do not\\n")
    'Failed to trace: it is odd.'
    """
    first, _, rest = message.partition("\n")
    explanation = re.search(r"^\s*Explanation: (.*)$", rest, re.MULTILINE)
    return f"{first}: {explanation[1]}" if explanation else first


def listen_to_breaks(output_graph: ModuleType, log: events.Log) -> None:
    """Write an event for each reason that Dynamo gives for splitting a graph."""
    finish = output_graph.GraphCompileReason.__post_init__

    def finish_and_tell(self: Any) -> None:
        finish(self)
        if not self.graph_break:
            return
        # The first frame is the one that is being compiled: its line is the place of the break
        # in that frame, and the place where its resume function will start.
        place = self.user_stack[0] if self.user_stack else None
        log.write(
            events.Broke(
                file=place.filename if place else "",
                line=(place.lineno or 0) if place else 0,
                reason=headline(self.reason),
            )
        )

    output_graph.GraphCompileReason.__post_init__ = finish_and_tell


def listen_to_timings(common: ModuleType, log: events.Log) -> None:
    """Write an event for each `torch.utils.benchmark.Measurement` that is made."""
    finish = common.Measurement.__post_init__

    def finish_and_tell(self: Any) -> None:
        finish(self)
        spec = self.task_spec
        log.write(
            events.Timed(
                pid=os.getpid(),
                label=spec.label or spec.stmt,
                case=spec.sub_label or "",
                side=spec.description or "",
                threads=spec.num_threads,
                calls_per_sample=self.number_per_run,
                samples_seconds=list(self.times),
            )
        )

    common.Measurement.__post_init__ = finish_and_tell


def listen_to_draws(replace_random: ModuleType, log: events.Log) -> None:
    """Write an event when Inductor replaces eager's random operations by its own."""
    replace = replace_random.replace_random_passes

    def replace_and_tell(*args: Any, **kwargs: Any) -> Any:
        replaced = replace(*args, **kwargs)
        if replaced:
            log.write(events.Drew(os.getpid()))
        return replaced

    replace_random.replace_random_passes = replace_and_tell
