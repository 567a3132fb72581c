"""A product of half and float is an error in both; Dynamo raises its own class, a RuntimeError too.

A handler for eager's RuntimeError gets either, so this is no difference.

Source: pytorch#177630.
"""

import contextlib

import torch

NAMES = {"2.13": set(), "2.14": set(), "2.15": set()}


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


def main() -> None:
    compiled = torch.compile(product)
    with contextlib.suppress(RuntimeError):
        compiled(torch.randn(2, 2, 3).half(), torch.randn(2, 3, 4))


if __name__ == "__main__":
    main()
