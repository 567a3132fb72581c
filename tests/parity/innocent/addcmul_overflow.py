"""The product inside addcmul is too large for a float32, and both give the same infinity."""

import torch


def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(x, x, y, value=-2.5)


def main() -> None:
    torch.compile(update)(torch.full((19,), 3e38), torch.full((19,), 1.5))


if __name__ == "__main__":
    main()
