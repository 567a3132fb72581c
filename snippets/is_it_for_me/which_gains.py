import statistics

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(1000, 1000)


def one_addition(x):
    return x + 1


def one_product(x):
    return x @ x


def chain(x):
    return (x - x.mean()) / (1 + x.abs()) * torch.sigmoid(x) + 1


def chain_then_product(x):
    return chain(x) @ x


ratios = {}
for function in one_addition, one_product, chain, chain_then_product:
    compiled = torch.compile(function)
    compiled(x)
    calls = 2 if "product" in function.__name__ else 20
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label=name, description=side)
        for name in [function.__name__.replace("_", " ")]
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(calls).median for timer in timers] for _ in range(11)]
    ratio = statistics.median(eager / later for eager, later in rounds)
    ratios[function.__name__] = ratio
    print(f"{function.__name__:20} eager / compiled {ratio:5.2f}x")
