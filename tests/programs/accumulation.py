"""Gradients of several small batches make one step; their norm is clipped; the rate warms up."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
ACCUMULATE = 3
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 4))
model = torch.compile(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))

inputs, targets = torch.randn(72, 10), torch.randint(4, (72,))
optimizer.zero_grad()
for index, (x, y) in enumerate(zip(inputs.split(8), targets.split(8)), start=1):
    loss = F.cross_entropy(model(x), y)
    (loss / ACCUMULATE).backward()
    print("batch", index, "loss", loss.item())
    if index % ACCUMULATE == 0:
        norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5)
        optimizer.step()
        warm_up.step()
        optimizer.zero_grad(set_to_none=False)
        print("step", index // ACCUMULATE, "norm", norm.item(), "rate", warm_up.get_last_lr()[0])
