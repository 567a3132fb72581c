"""Quantisation-aware training: a fake-quantise with a straight-through gradient, a range observer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class FakeQuantise(nn.Module):
    def __init__(self, bits=8):
        super().__init__()
        self.levels = 2 ** (bits - 1) - 1
        self.register_buffer("largest", torch.tensor(0.0))

    def forward(self, x):
        if self.training:
            now = x.detach().abs().max()
            self.largest.copy_(torch.where(self.largest > 0, 0.9 * self.largest + 0.1 * now, now))
        scale = self.largest.clamp(min=1e-8) / self.levels
        return Round.apply((x / scale).clamp(-self.levels, self.levels)) * scale


class QuantLinear(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.quantise_input, self.quantise_weight = FakeQuantise(), FakeQuantise(4)

    def forward(self, x):
        return F.linear(self.quantise_input(x), self.quantise_weight(self.weight), self.bias)


net = nn.Sequential(QuantLinear(6, 12), nn.ReLU(), QuantLinear(12, 2))
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
x, y = torch.randn(16, 6), torch.randint(2, (16,))
for step in range(4):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), "range", net[2].quantise_input.largest.item())
net.eval()
with torch.no_grad():
    print("eval", F.cross_entropy(model(x), y).item())
