"""A number that the compiled function draws from Python's generator is not the one eager draws.

Source: pytorch#198187.
"""

import random

import torch

NAMES = {"2.13": set(), "2.14": {"value"}, "2.15": set()}


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * random.random()


def main() -> None:
    torch.compile(scaled)(torch.ones(2))


if __name__ == "__main__":
    main()
