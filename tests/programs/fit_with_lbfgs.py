"""Curve fitting with L-BFGS, which calls its closure, and the compiled model in it, many times."""

import torch
from torch import nn

torch.manual_seed(0)


class Decay(nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(1.0))
        self.rate = nn.Parameter(torch.tensor(0.1))
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(self, t):
        return self.amplitude * torch.exp(-self.rate * t) + self.offset


t = torch.linspace(0, 4, 32)
y = 2.5 * torch.exp(-0.7 * t) + 0.3 + 0.01 * torch.randn(32)
model = Decay()
predict = torch.compile(model)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
evaluations = 0


def closure():
    global evaluations
    evaluations += 1
    optimizer.zero_grad()
    loss = (predict(t) - y).square().mean()
    loss.backward()
    return loss


for step in range(3):
    print("step", step, "loss", optimizer.step(closure).item(), "evaluations", evaluations)
print({name: parameter.item() for name, parameter in model.named_parameters()})
