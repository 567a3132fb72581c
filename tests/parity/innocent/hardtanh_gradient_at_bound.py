"""A bound of hardtanh that bfloat16 can not hold is rounded alike, and so is the gradient at it.

Source: pytorch#185472.
"""

import torch
from torch.nn.functional import hardtanh


def clip(x: torch.Tensor) -> torch.Tensor:
    return hardtanh(x, -0.3, 0.3)


def main() -> None:
    x = torch.tensor([-0.3, 0.0, 0.3, 0.7], dtype=torch.bfloat16, requires_grad=True)
    torch.compile(clip)(x).sum().backward()


if __name__ == "__main__":
    main()
