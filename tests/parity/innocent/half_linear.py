"""A half-precision layer whose activation is fused has one rounding less than eager's."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16)).half()
    torch.compile(model)(torch.randn(8, 64).half()).float().square().mean().backward()


if __name__ == "__main__":
    main()
