import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
x = torch.randn(8, 8)
skips = {}


def square(x):
    return x @ x


for name in "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs":
    torch.compiler.reset()
    counters.clear()
    torch.compile(square, mode=name)(x)
    skips[name.replace("-", "_")] = counters["inductor"]["cudagraph_skips"]
    print(f"{name:27} CUDA graphs skipped: {counters['inductor']['cudagraph_skips']}")
