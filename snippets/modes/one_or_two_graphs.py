import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
x = torch.randn(8, 8)
graphs_after = {}


def square(x):
    return x @ x


def use(name, **arguments):
    torch.compile(square, **arguments)(x)
    graphs_after[name] = counters["stats"]["unique_graphs"]
    print(f"{name:16} {graphs_after[name]} graphs")


use("nothing_said")
use("default", mode="default")
use("reduce_overhead", mode="reduce-overhead")
use("its_option", options={"triton.cudagraphs": True})
use("max_autotune", mode="max-autotune")
