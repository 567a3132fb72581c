"""ldexp of a half and a float exponent is a float in eager and a half when compiled.

Source: pytorch#197091.
"""

import torch

NAMES = {"2.13": {"dtype"}, "2.14": {"dtype"}, "2.15": {"dtype"}}


def scale(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return torch.ldexp(x, exponent)


def main() -> None:
    torch.compile(scale)(torch.tensor([0.75, -2.0]).half(), torch.tensor([3.0, -1.0]))


if __name__ == "__main__":
    main()
