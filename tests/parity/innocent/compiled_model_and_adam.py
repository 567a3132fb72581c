"""Adam divides by the size of the gradient: where that is all but zero, its sign is the whole step."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.Tanh(), nn.Linear(12, 2))
    nn.init.zeros_(model[0].bias)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    compiled = torch.compile(model)
    for _ in range(3):
        adam.zero_grad()
        compiled(torch.randn(16, 6)).square().mean().backward()
        adam.step()


if __name__ == "__main__":
    main()
