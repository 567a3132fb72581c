import statistics

import torch
import torch.nn as nn
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))

compiled = torch.compile(model)  # <-- that's it; returns an optimized model
x = torch.randn(64, 1024)
out = compiled(x)  # first call compiles; later calls run fast
print(out.shape)  # torch.Size([64, 10])

# What the lesson does not show: is it faster? Eager and compiled in turns, medians.
with torch.no_grad():
    compiled(x)  # the code above was for training; this makes the other
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label="two linear layers", description=side)
        for side, f in (("eager", model), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(20).median for timer in timers] for _ in range(25)]
eager_seconds, compiled_seconds = (statistics.median(side) for side in zip(*rounds))
ratio = eager_seconds / compiled_seconds
print(f"eager    {1e3 * eager_seconds:.2f} ms per call")
print(f"compiled {1e3 * compiled_seconds:.2f} ms per call")
