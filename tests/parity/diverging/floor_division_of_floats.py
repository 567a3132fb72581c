"""1.0 // 0.1 is 9 for eager, as for Python; compiled, it is the floor of a quotient rounded to 10.

On 2.13 what is divided by zero differs too.

Source: pytorch#197895.
"""

import torch

NAMES = {"2.13": {"nan", "value"}, "2.14": {"value"}, "2.15": {"value"}}


def quotients(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x // y, x // 0.0


def main() -> None:
    x = torch.tensor([1.0, 2.5, 0.3, -7.5, float("inf")]).repeat(4)
    y = torch.tensor([0.1, 0.1, 0.1, 0.25, 2.0]).repeat(4)
    torch.compile(quotients)(x, y)


if __name__ == "__main__":
    main()
