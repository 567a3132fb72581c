"""A slice is assigned from a tensor that changes right after, and gets the new values.

Source: pytorch#198131.
"""

import torch

NAMES = {"2.13": {"argument/value"}, "2.14": {"argument/value"}, "2.15": set()}


def keep_and_double(kept: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    kept[:] = x[:]
    x.mul_(2)
    return x + 1


def main() -> None:
    torch.compile(keep_and_double)(torch.zeros(2, 2), torch.ones(2, 2))


if __name__ == "__main__":
    main()
