import time

import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
torch.set_num_threads(1)
sentences = [torch.randn(length, 4096) for length in range(60, 124, 8)]  # 8 lengths


def make_score(cubic):  # each row of the table has its own constant, so its own kernels
    def score(x):
        gelu = 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + cubic * x**3)))
        return gelu.mean(-1)

    return score


def padded(function):  # every sentence becomes 128 long, and is cut back afterwards
    pad = torch.nn.functional.pad
    return lambda x: function(pad(x, (0, 0, 0, 128 - len(x))))[: len(x)]


def one_pass(function):
    start = time.perf_counter()
    for x in sentences:
        function(x)
    return time.perf_counter() - start


torch.compile(lambda t: t + 1)(sentences[0])  # pays for imports and toolchain
names, passes = ["default", "dynamic_true", "dynamic_false", "padded"], {}
for row, dynamic in enumerate([None, True, False, None]):
    name = names[row]
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(make_score(0.044715 + row / 1000), dynamic=dynamic)
    function = padded(compiled) if name == "padded" else compiled
    first, later = one_pass(function), min(one_pass(function) for _ in range(20))
    graphs = counters["stats"]["unique_graphs"]
    passes[name] = {"first": first, "later": later, "graphs": graphs}
    print(f"{name:13} {graphs} graphs  first {first:5.2f} s  later {1e3 * later:5.2f} ms")
eager = min(one_pass(make_score(0.044715)) for _ in range(20))
print(f"eager                                 {1e3 * eager:6.2f} ms")
