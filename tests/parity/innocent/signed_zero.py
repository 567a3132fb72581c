"""Whether a zero keeps its sign is not what the functions promise, and 0.0 equals -0.0."""

import torch
from torch.nn.functional import relu6, softshrink


def through_zero(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return relu6(x), softshrink(x), torch.fmin(x, torch.zeros_like(x)), torch.atanh(x / 8)


def main() -> None:
    torch.compile(through_zero)(torch.tensor([0.0, -0.0, 2.0, -2.0]).repeat(9))


if __name__ == "__main__":
    main()
