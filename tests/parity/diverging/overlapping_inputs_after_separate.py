"""Code compiled for separate inputs also serves inputs that overlap, and reads stale elements.

Source: pytorch#139789.
"""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def triple_and_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.mul_(3)
    return x + y


def main() -> None:
    compiled = torch.compile(triple_and_add)
    compiled(torch.ones(3), torch.ones(3))
    row = torch.ones(4)
    compiled(row[:-1], row[1:])


if __name__ == "__main__":
    main()
