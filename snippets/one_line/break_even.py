import statistics
import time

import torch
from torch import nn
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def predict(function, x):
    with torch.no_grad():
        function(x)


def train(function, x):
    function(x).sum().backward()


mlp = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
jobs = {
    "mlp_predict": (predict, mlp, torch.randn(64, 1024)),
    "gelu_predict": (predict, gelu, torch.randn(1_000_000)),
    "gelu_train": (train, gelu, torch.randn(1_000_000, requires_grad=True)),
}
predict(torch.compile(torch.relu), torch.randn(8))  # pays for imports and toolchain
first, saved, pay_back = {}, {}, {}
for name, (job, function, x) in jobs.items():
    compiled = torch.compile(function)
    start = time.perf_counter()
    job(compiled, x)
    first[name] = time.perf_counter() - start
    timers = [
        Timer("job(f, x)", globals={"job": job, "f": f, "x": x}, label=name, description=side)
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(3).median for timer in timers] for _ in range(20)]
    saved[name] = statistics.median(eager - later for eager, later in rounds)
    calls = first[name] / saved[name]
    pay_back[name] = f"after {calls:,.0f} calls" if calls > 0 else "never"
    print(f"{name:13} first call {first[name]:5.2f} s,", end=" ")
    print(f"each later one saves {1e6 * saved[name]:8.1f} µs")
