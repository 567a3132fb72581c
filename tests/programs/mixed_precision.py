"""Mixed precision: autocast around the forward pass, a scaler around the backward pass."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.inner(x))


def train(dtype, scaler):
    torch.manual_seed(1)
    model = torch.compile(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(dtype, step, loss.item(), norm.item(), scaler.get_scale())
    model.eval()
    with torch.inference_mode(), torch.autocast("cpu", dtype=dtype):
        print(dtype, "logits", model(x).float().sum().item())


x, y = torch.randn(16, 8), torch.randint(3, (16,))
train(torch.bfloat16, torch.amp.GradScaler("cpu", enabled=False))
train(torch.float16, torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2))
