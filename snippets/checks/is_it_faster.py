import statistics
import time

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def mean_of_ten(function, x):
    start = time.perf_counter()
    for _ in range(10):
        function(x)
    return (time.perf_counter() - start) / 10


fast_gelu = torch.compile(gelu)
x = torch.randn(1_000_000)
gelu(x)  # eager is warm in every row
ratios = {"first_call_inside": mean_of_ten(gelu, x) / mean_of_ten(fast_gelu, x)}
with torch.no_grad():  # warm, but for the other grad mode
    ratios["warm_in_another_mode"] = mean_of_ten(gelu, x) / mean_of_ten(fast_gelu, x)
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label="gelu", description=side)
        for side, f in (("eager", gelu), ("compiled", fast_gelu))
    ]
    rounds = [[timer.timeit(5).median for timer in timers] for _ in range(20)]
eager, compiled = (statistics.median(side) for side in zip(*rounds))
ratios["in_turns_median"] = eager / compiled
single = sorted(one / other for one, other in rounds)
ratios["lowest_single_round"], ratios["highest_single_round"] = single[0], single[-1]
for how, ratio in ratios.items():
    print(f"{how:22} eager / compiled {ratio:6.2f}x")
