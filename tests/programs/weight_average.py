"""An exponential moving average of the weights, and a plain average with its batch norm updated."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 1))
model = torch.compile(net)
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
swa = AveragedModel(net)
compiled_ema = torch.compile(ema)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)

x = torch.randn(32, 6)
y = x[:, :1] * x[:, 1:2]
for step in range(6):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(net)
    if step >= 3:
        swa.update_parameters(net)
        schedule.step()
    with torch.no_grad():
        ema.eval()
        averaged = F.mse_loss(compiled_ema(x), y)
    print("step", step, "loss", loss.item(), "of the average", averaged.item())

update_bn([x[:16], x[16:]], swa)
swa.eval()
with torch.no_grad():
    print("stochastic weight averaging", F.mse_loss(torch.compile(swa)(x), y).item())
