"""Low-rank adaptation: small matrices beside frozen weights, then merged into them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

torch.manual_seed(0)


class LoRA(nn.Module):
    def __init__(self, weight, rank=2, alpha=4):
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, weight.shape[1]) * 0.1)
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank))
        self.scale, self.enabled = alpha / rank, True

    def forward(self, weight):
        return weight + self.scale * self.b @ self.a if self.enabled else weight


model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)).requires_grad_(False)
for layer in (model[0], model[2]):
    parametrize.register_parametrization(layer, "weight", LoRA(layer.weight))
compiled = torch.compile(model)
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=1e-2)
x, y = torch.randn(16, 8), torch.randint(3, (16,))
for step in range(3):
    loss = F.cross_entropy(compiled(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())

with torch.no_grad():
    print("with", F.cross_entropy(compiled(x), y).item())
    for layer in (model[0], model[2]):
        layer.parametrizations.weight[0].enabled = False
    print("without", F.cross_entropy(compiled(x), y).item())
    for layer in (model[0], model[2]):
        layer.parametrizations.weight[0].enabled = True
        parametrize.remove_parametrizations(layer, "weight")
    print("merged", F.cross_entropy(compiled(x), y).item())
