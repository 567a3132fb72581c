"""softshrink keeps a NaN in eager; compiled, it is lost.

Seen on torch 2.13 only.
"""

import torch
from torch.nn.functional import softshrink

NAMES = {"2.13": {"nan"}, "2.14": set(), "2.15": set()}


def shrink(x: torch.Tensor) -> torch.Tensor:
    return softshrink(x, 0.5)


def main() -> None:
    # Enough elements for the vectorised loop and for the scalar one that finishes it.
    torch.compile(shrink)(torch.tensor([float("nan"), 2.0, 0.1]).repeat(7))


if __name__ == "__main__":
    main()
