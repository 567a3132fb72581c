import statistics
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mean_seconds(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function(x)
    return (time.perf_counter() - start) / calls


fast_gelu = torch.compile(gelu)
x = torch.randn(1_000_000)

with_first_call = mean_seconds(fast_gelu, calls=50)  # the pitfall: the first call compiles
turns = [(mean_seconds(gelu, 10), mean_seconds(fast_gelu, 10)) for _ in range(15)]
eager, warmed_up = (statistics.median(side) for side in zip(*turns))

wrong_ratio, right_ratio = eager / with_first_call, eager / warmed_up
print(f"compiled, first call in the mean   {1e3 * with_first_call:8.3f} ms per call")
print(f"compiled, warmed up                {1e3 * warmed_up:8.3f} ms per call")
print(f"eager                              {1e3 * eager:8.3f} ms per call")
