"""A gradient taken inside counts a column that was added in place twice.

Source: pytorch#136662.
"""

import torch


def gradient(x: torch.Tensor) -> torch.Tensor:
    def loss(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        total[:, 0] += x[:, 1].abs()
        total[:, 0] += x[:, 1].abs()
        return total.sum()

    return torch.func.grad(loss)(x)


def main() -> None:
    torch.compile(gradient)(torch.randn(3, 2))


if __name__ == "__main__":
    main()
