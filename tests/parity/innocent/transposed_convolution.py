"""A transposed convolution adds overlapping windows, in eager and compiled in whatever order."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1), nn.Softplus())
    torch.compile(model)(torch.randn(2, 3, 7, 7, requires_grad=True)).sum().backward()


if __name__ == "__main__":
    main()
