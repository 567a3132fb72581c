"""Inductor may order operations by the memory they need; two dropouts still draw in eager's order.

Source: pytorch#192635.
"""

import torch
from torch.nn.functional import dropout

RANDOM = True


def mix(large: torch.Tensor, small: torch.Tensor) -> torch.Tensor:
    columns = dropout(large, 0.5, training=True).sum(0)
    waves = (columns[:, None] * torch.ones(1, 512)).cos().sum(0)
    return waves[:4] + dropout(small, 0.5, training=True).sum()


def main() -> None:
    torch.compile(mix)(torch.ones(512, 512), torch.ones(4))


if __name__ == "__main__":
    main()
