"""Eager refuses a binary cross entropy whose target is no probability; compiled code computes it.

Source: pytorch#193757.
"""

import torch
from torch.nn.functional import binary_cross_entropy

NAMES = {
    "2.13": {"exception-only-in-eager"},
    "2.14": {"exception-only-in-eager"},
    "2.15": {"exception-only-in-eager"},
}


def loss(probability: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return binary_cross_entropy(probability, target)


def main() -> None:
    torch.compile(loss)(torch.tensor([0.3, 0.6]), torch.tensor([0.0, 2.0]))


if __name__ == "__main__":
    main()
