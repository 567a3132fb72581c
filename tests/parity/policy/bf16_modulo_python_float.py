"""A bfloat16 modulo 1.3: eager rounds the 1.3 to bfloat16 first, compiled code does not.

By the rule for floats this is no difference: compiled is the one that float64 agrees with.

Source: pytorch#183083, pytorch#186875.
"""

import torch

NAMES = {"2.13": set(), "2.14": set(), "2.15": set()}


def modulo(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.fmod(1.3), x.remainder(1.3)


def main() -> None:
    torch.compile(modulo)(torch.tensor([1.296875, -1.296875, 2.59375, 0.5]).bfloat16().repeat(5))


if __name__ == "__main__":
    main()
