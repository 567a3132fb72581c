"""SGD with momentum, compiled, carries its buffers from step to step from a bias of zeros."""

import torch
from torch import nn


def main() -> None:
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 2))
    nn.init.zeros_(model[0].bias)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    forward, step = torch.compile(model), torch.compile(sgd.step)
    for _ in range(3):
        sgd.zero_grad()
        forward(torch.randn(16, 6)).square().mean().backward()
        step()


if __name__ == "__main__":
    main()
