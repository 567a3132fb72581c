"""The gradient of a bias before batch norm is zero: what both compute is rounding, none like another."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    compiled = torch.compile(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        compiled(torch.randn(4, 2, 8, 8, requires_grad=True)).sum().backward()
        sgd.step()
        sgd.zero_grad()


if __name__ == "__main__":
    main()
