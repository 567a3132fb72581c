"""1.3 // 0.1 is 12 for Python, and 13 for a compiled function that takes the 1.3 as a symbol."""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def shift(x: torch.Tensor, amount: float) -> torch.Tensor:
    return x + amount // 0.1


def main() -> None:
    compiled = torch.compile(shift, dynamic=True)
    for amount in (0.7, 1.3):
        compiled(torch.zeros(2), amount)


if __name__ == "__main__":
    main()
