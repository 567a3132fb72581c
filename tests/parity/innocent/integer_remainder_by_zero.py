"""The remainder of a division of integers by zero is the same error in both.

Source: pytorch#183610.
"""

import contextlib

import torch


def remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x % y


def main() -> None:
    compiled = torch.compile(remainder)
    with contextlib.suppress(RuntimeError):
        compiled(torch.tensor([5, 6]), torch.tensor([2, 0]))


if __name__ == "__main__":
    main()
