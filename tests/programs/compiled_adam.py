"""A compiled Adam step. Its bias correction is a float32 tensor: it differs from eager, truly."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model = torch.compile(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
step_optimizer = torch.compile(optimizer.step)
x, y = torch.randn(16, 4), torch.randn(16, 1)
for step in range(4):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    step_optimizer()
    print("step", step, "loss", loss.item())
