"""A caller who reads a quotient in the order of its storage gets other numbers after compiling.

The audit does not see what the caller reads. It sees the strides that are the reason.

Source: pytorch#198364.
"""

import torch

NAMES = {"2.13": {"stride"}, "2.14": {"stride"}, "2.15": {"stride"}}


def whole_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="floor")


def main() -> None:
    column_major = torch.arange(6.0).view(3, 2).t()
    quotient = torch.compile(whole_parts)(column_major, torch.ones(2, 3))
    quotient.as_strided(size=(6,), stride=(1,)).tolist()


if __name__ == "__main__":
    main()
