"""An index that a dimension of size one does not have is an IndexError in both.

Source: pytorch#183769.
"""

import contextlib

import torch


def third(x: torch.Tensor) -> torch.Tensor:
    return x.unsqueeze(0).select(0, 2) * 2


def main() -> None:
    compiled = torch.compile(third)
    with contextlib.suppress(IndexError):
        compiled(torch.ones(2, 2))


if __name__ == "__main__":
    main()
