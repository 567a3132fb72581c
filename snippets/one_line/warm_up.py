import statistics
import time

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


fast_gelu = torch.compile(gelu)
x = torch.randn(1_000_000)

start = time.perf_counter()
for _ in range(50):  # the pitfall: the first call compiles
    fast_gelu(x)
with_first_call = (time.perf_counter() - start) / 50

timers = [
    Timer("f(x)", globals={"f": f, "x": x}, label="gelu", description=side)
    for side, f in (("eager", gelu), ("compiled", fast_gelu))
]
rounds = [[timer.timeit(10).median for timer in timers] for _ in range(15)]
eager, warmed_up = (statistics.median(side) for side in zip(*rounds))

wrong_ratio, right_ratio = eager / with_first_call, eager / warmed_up
print(f"compiled, first call in the mean   {1e3 * with_first_call:8.3f} ms per call")
print(f"compiled, warmed up                {1e3 * warmed_up:8.3f} ms per call")
print(f"eager                              {1e3 * eager:8.3f} ms per call")
