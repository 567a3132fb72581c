"""A complex tensor plus a column made inside is the same sum.

Source: pytorch#174891.
"""

import torch


def shift(z: torch.Tensor) -> torch.Tensor:
    return z + torch.ones(2, 1, dtype=torch.complex64)


def main() -> None:
    torch.compile(shift)(torch.randn(2, 3, dtype=torch.complex64))


if __name__ == "__main__":
    main()
