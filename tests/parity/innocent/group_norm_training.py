"""A convolution before group norm: gradients that cancel almost to nothing, in a training step."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU())
    compiled = torch.compile(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        compiled(torch.randn(2, 3, 9, 9)).square().mean().backward()
        sgd.step()
        sgd.zero_grad()


if __name__ == "__main__":
    main()
