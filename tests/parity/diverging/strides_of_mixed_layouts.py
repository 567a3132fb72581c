"""Of a transposed and a plain operand eager's result is transposed, the compiled one is plain.

Source: pytorch#198364.
"""

import torch

NAMES = {"2.13": {"stride"}, "2.14": {"stride"}, "2.15": {"stride"}}


def combine(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.floor_divide(x, y), torch.copysign(x, y)


def main() -> None:
    torch.compile(combine)(torch.rand(4, 2).t(), torch.rand(2, 4) + 1)


if __name__ == "__main__":
    main()
