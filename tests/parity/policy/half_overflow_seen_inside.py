"""320 squared is too large for a half, but not for the float32 in which a kernel asks isinf.

Infinities must stand in the same places, and booleans must be equal.

Source: pytorch#183607.
"""

import torch

NAMES = {"2.13": {"inf", "value"}, "2.14": {"inf", "value"}, "2.15": {"inf", "value"}}


def without_overflow(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    square = x * x
    overflow = square.isinf()
    return square, overflow, torch.where(overflow, -torch.ones_like(square), square)


def main() -> None:
    torch.compile(without_overflow)(torch.full((33,), 320.0, dtype=torch.float16))


if __name__ == "__main__":
    main()
