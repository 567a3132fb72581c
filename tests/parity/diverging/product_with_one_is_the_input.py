"""x * 1.0 is a new tensor in eager; compiled, it is x itself, and a write to it changes x.

Source: pytorch#197893.
"""

import torch

NAMES = {"2.13": set(), "2.14": {"aliasing"}, "2.15": {"aliasing"}}


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 1.0


def main() -> None:
    x = torch.zeros(3)
    torch.compile(scaled)(x).add_(1)


if __name__ == "__main__":
    main()
