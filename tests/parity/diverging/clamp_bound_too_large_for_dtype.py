"""Eager refuses a float32 clamp at 1e40; compiled code takes the bound for infinity.

Source: pytorch#195675.
"""

import torch

NAMES = {
    "2.13": {"exception-only-in-eager"},
    "2.14": {"exception-only-in-eager"},
    "2.15": {"exception-only-in-eager"},
}


def cap(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(max=1e40)


def main() -> None:
    torch.compile(cap)(torch.tensor([1.0, float("inf")]))


if __name__ == "__main__":
    main()
