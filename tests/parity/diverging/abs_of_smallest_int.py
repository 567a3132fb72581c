"""The C++ compiler takes abs() for positive, which it is not for the smallest of all integers.

Source: pytorch#190764.
"""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def signs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.abs() < 0, -x > 0


def main() -> None:
    smallest = torch.iinfo(torch.int32).min
    torch.compile(signs)(torch.tensor([smallest], dtype=torch.int32))


if __name__ == "__main__":
    main()
