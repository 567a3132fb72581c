import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 4))
x, y = torch.randn(256, 32), torch.randint(4, (256,))


def train(model, forward, dtype):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = nn.functional.cross_entropy(forward(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


gaps, last = {}, {}
for dtype in torch.bfloat16, torch.float16:
    torch.compiler.reset()
    one, other = copy.deepcopy(model), copy.deepcopy(model)
    eager = train(one, one, dtype)
    compiled = train(other, torch.compile(other), dtype)
    name = str(dtype).removeprefix("torch.")
    gaps[name] = f"{max(abs(a - b) for a, b in zip(eager, compiled)):.0e}"
    last[name] = f"{eager[-1]:.4f} and {compiled[-1]:.4f}"
    print(f"{name:9} first loss {eager[0]:.4f}, last {last[name]}, largest gap {gaps[name]}")
