"""Eager writes in place to windows that share elements; compiled code refuses to.

Source: pytorch#165409, pytorch#183888.
"""

import contextlib

import torch

NAMES = {
    "2.13": {"exception-only-in-compiled"},
    "2.14": {"exception-only-in-compiled"},
    "2.15": {"exception-only-in-compiled"},
}


def magnitudes(x: torch.Tensor) -> torch.Tensor:
    windows = (x * 2).unfold(0, size=4, step=2)
    return windows.abs_()


def main() -> None:
    compiled = torch.compile(magnitudes)
    with contextlib.suppress(RuntimeError):
        compiled(torch.linspace(-1, 1, 8))


if __name__ == "__main__":
    main()
