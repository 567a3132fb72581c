"""A fused bfloat16 chain rounds once where eager rounds after every operation: it is the nearer one.

Source: pytorch#183761.
"""

import torch


def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return ((x * y + x) * 1.7 - y).sigmoid() * x


def main() -> None:
    x, y = torch.randn(2, 2048).bfloat16()
    torch.compile(gate)(x, y)


if __name__ == "__main__":
    main()
