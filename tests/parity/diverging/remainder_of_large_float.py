"""A float32 remainder is exact in eager; compiled, it is rounding error once the quotient is large.

Source: pytorch#198057.
"""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def remainders(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x % 3.0, x.remainder(-3.0)


def main() -> None:
    # Enough elements for the vectorised loop and for the scalar one that finishes it.
    x = torch.tensor([1e10, -2e10, 7e11, 4.0, 1e9]).repeat(5)
    torch.compile(remainders)(x)


if __name__ == "__main__":
    main()
