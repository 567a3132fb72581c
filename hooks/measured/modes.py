"""Switches of the process that change what code means: read, put back, entered again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch


class _Switch(NamedTuple):
    get: Callable[[], Any]
    put: Callable[[Any], object]


def _deterministic() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _set_autocast(device: str, enabled: bool, dtype: torch.dtype) -> None:
    torch.set_autocast_enabled(device, enabled)
    torch.set_autocast_dtype(device, dtype)


def _autocast(device: str) -> _Switch:
    return _Switch(
        lambda: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)),
        lambda value: _set_autocast(device, *value),
    )


_SWITCHES = {
    "grad mode": _Switch(torch.is_grad_enabled, torch._C._set_grad_enabled),
    "default dtype": _Switch(torch.get_default_dtype, torch.set_default_dtype),
    "default device": _Switch(torch.get_default_device, torch.set_default_device),
    "deterministic algorithms": _Switch(
        _deterministic,
        lambda value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "float32 matmul precision": _Switch(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
    "threads": _Switch(torch.get_num_threads, torch.set_num_threads),
    "anomaly mode": _Switch(
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda value: torch.set_anomaly_enabled(*value),
    ),
    "autocast on CPU": _autocast("cpu"),
    "autocast on CUDA": _autocast("cuda"),
    "autocast cache": _Switch(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "cuDNN benchmark": _Switch(
        lambda: torch.backends.cudnn.benchmark,
        lambda value: setattr(torch.backends.cudnn, "benchmark", value),
    ),
    "cuDNN deterministic": _Switch(
        lambda: torch.backends.cudnn.deterministic,
        lambda value: setattr(torch.backends.cudnn, "deterministic", value),
    ),
}


def read() -> dict[str, Any]:
    """All switches by name."""
    return {name: switch.get() for name, switch in _SWITCHES.items()}


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Whatever the block switches is switched back."""
    before = read()
    try:
        yield
    finally:
        put(before)


def put(before: dict[str, Any]) -> None:
    """Switch back what has changed since `before` was read."""
    for name, switch in _SWITCHES.items():
        if switch.get() != before[name]:
            switch.put(before[name])


class Caller:
    """Grad mode and autocast of the caller of a compiled function, to be entered again later."""

    def __init__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._autocast = [
            (device, torch.get_autocast_dtype(device))
            for device in ("cpu", "cuda")
            if torch.is_autocast_enabled(device)
        ]

    @contextlib.contextmanager
    def again(self, *, backward: bool) -> Iterator[None]:
        """The caller's modes; with gradients where a backward pass is to follow."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(self._grad or backward))
            for device, dtype in self._autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype, cache_enabled=False))
            yield
