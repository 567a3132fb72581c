import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mean_seconds(function, calls=50):
    start = time.perf_counter()
    for _ in range(calls):
        function(x)
    return (time.perf_counter() - start) / calls


fast_gelu = torch.compile(gelu)
x = torch.randn(1_000_000)

eager = mean_seconds(gelu)
with_first_call = mean_seconds(fast_gelu)  # the pitfall: the first call compiles
warmed_up = mean_seconds(fast_gelu)

wrong_ratio, right_ratio = eager / with_first_call, eager / warmed_up
print(f"eager                              {1e3 * eager:8.3f} ms per call")
print(f"compiled, first call in the mean   {1e3 * with_first_call:8.3f} ms per call")
print(f"compiled, warmed up                {1e3 * warmed_up:8.3f} ms per call")
