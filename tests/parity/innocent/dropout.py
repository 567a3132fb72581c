"""Compiled dropout draws from a stream of its own, unless Inductor is told to draw as eager does.

Source: pytorch#118735, pytorch#141645.
"""

import torch
from torch.nn.functional import dropout

RANDOM = True


def drop(x: torch.Tensor) -> torch.Tensor:
    return dropout(x, p=0.5, training=True)


def main() -> None:
    torch.compile(drop)(torch.ones(500))


if __name__ == "__main__":
    main()
