import statistics

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 1024)


def chain(x):
    return torch.sigmoid(x) * x.tanh() + 0.5 * x.square() - x.abs()


functions = {
    "row_sum_alone": lambda x: x.sum(-1),
    "row_sum_of_a_chain": lambda x: chain(x).sum(-1),
    "softmax_alone": lambda x: x.softmax(-1),
    "softmax_of_a_chain": lambda x: chain(x).softmax(-1),
}
ratios = {}
for name, function in functions.items():
    compiled = torch.compile(function)
    compiled(x)
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label=name.replace("_", " "), description=side)
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(5).median for timer in timers] for _ in range(15)]
    ratios[name] = statistics.median(eager / later for eager, later in rounds)
    print(f"{name:19} eager / compiled {ratios[name]:5.2f}x")
