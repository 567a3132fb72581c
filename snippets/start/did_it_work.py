import statistics

import torch
from torch._dynamo.utils import counters
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


fast_gelu = torch.compile(gelu)
x = torch.randn(1_000_000)

# 1. Did it compile? Count the graphs.
y = fast_gelu(x)
graphs = counters["stats"]["unique_graphs"]
print("1. graphs compiled:", graphs)

# 2. Is it right? Compare with eager, with PyTorch's tolerance for the dtype.
torch.testing.assert_close(y, gelu(x))
largest_difference = f"{(y - gelu(x)).abs().max():.1e}"
print("2. agrees with eager; largest difference:", largest_difference)

# 3. Is it faster? After the first call; eager and compiled in turns; medians.
timers = [
    Timer("f(x)", globals={"f": f, "x": x}, label="gelu", description=side)
    for side, f in (("eager", gelu), ("compiled", fast_gelu))
]
rounds = [[timer.timeit(5).median for timer in timers] for _ in range(20)]
eager_seconds, compiled_seconds = (statistics.median(side) for side in zip(*rounds))
ratio = eager_seconds / compiled_seconds
print(f"3. eager / compiled: {ratio:.1f}x")
