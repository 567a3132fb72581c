"""A Wasserstein critic with a gradient penalty: a second derivative through the compiled critic.

Only Dynamo compiles here: AOTAutograd refuses to differentiate twice.
"""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
score = torch.compile(critic, backend="eager")
optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
for step in range(4):
    real, fake = torch.randn(16, 2) + 2, torch.randn(16, 2)
    mix = torch.rand(16, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(score(between).sum(), between, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    loss = score(fake).mean() - score(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), "penalty", penalty.item())
