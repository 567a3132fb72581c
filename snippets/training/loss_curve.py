import copy
import itertools
import statistics
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
steps = 120


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        h = self.norm(self.linear(x))
        return x + 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h**3)))


first_model = nn.Sequential(nn.Linear(16, 64), Block(64), Block(64), nn.Linear(64, 1))
batches = [torch.randn(4096, 16) for _ in range(8)]


def train(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, seconds = [], []
    for x in itertools.islice(itertools.cycle(batches), steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = (model(x).squeeze() - x.sin().sum(-1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds


eager_losses, eager_seconds = train(copy.deepcopy(first_model))
compiled_losses, compiled_seconds = train(torch.compile(copy.deepcopy(first_model)))

gaps = [abs(a - b) for a, b in zip(eager_losses, compiled_losses)]
for step in 1, 10, 60, 120:
    losses = f"{eager_losses[step - 1]:.6f}  {compiled_losses[step - 1]:.6f}"
    print(f"step {step:4}  loss {losses}  largest gap so far {max(gaps[:step]):.0e}")
largest_gap = f"{max(gaps):.0e}"
first_step = compiled_seconds[0]
eager_step, compiled_step = (statistics.median(s) for s in (eager_seconds, compiled_seconds))
saved = eager_step - compiled_step
pay_back = f"after {first_step / saved:,.0f} steps" if saved > 0 else "never"
print(f"first step {first_step:.2f} s; then {1e3 * compiled_step:.2f} ms a step,", end=" ")
print(f"eager {1e3 * eager_step:.2f} ms: paid back {pay_back}")
