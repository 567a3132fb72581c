"""Three steps of training: products, a bias gradient that sums a batch, updated parameters."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 4))
    compiled = torch.compile(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        compiled(torch.randn(32, 48, requires_grad=True)).sum().backward()
        sgd.step()
        sgd.zero_grad()


if __name__ == "__main__":
    main()
