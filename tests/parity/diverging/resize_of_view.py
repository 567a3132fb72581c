"""resize_ of a view gives another shape to the tensor that it is a view of.

Source: pytorch#191449.
"""

import torch

NAMES = {"2.13": {"shape"}, "2.14": {"shape"}, "2.15": set()}


def grow_view(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2
    doubled.view(-1).resize_(4)
    return doubled + 1


def main() -> None:
    torch.compile(grow_view)(torch.ones(1))


if __name__ == "__main__":
    main()
