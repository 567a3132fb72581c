"""The whole training step in one compiled function, then a compiled optimizer with a schedule."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(16, 6)
y = x.sum(1, keepdim=True).tanh()


def make(**options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
    return model, torch.optim.SGD(model.parameters(), momentum=0.9, **options)


model, optimizer = make(lr=0.1)


@torch.compile
def train_step(inputs, targets):
    optimizer.zero_grad()
    loss = F.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.detach()


for step in range(4):
    print("whole step", step, train_step(x, y).item())

model, optimizer = make(lr=torch.tensor(0.1), nesterov=True)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)


@torch.compile(fullgraph=False)
def update():
    optimizer.step()
    schedule.step()


for step in range(4):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    update()
    print("compiled update", step, loss.item(), optimizer.param_groups[0]["lr"].item())
