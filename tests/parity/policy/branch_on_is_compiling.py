"""torch.compiler.is_compiling() is there to do something else when compiled.

It is a difference all the same, and whoever wants it can declare it.
"""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * (2 if torch.compiler.is_compiling() else 3)


def main() -> None:
    torch.compile(scaled)(torch.ones(2))


if __name__ == "__main__":
    main()
