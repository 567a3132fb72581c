import torch
import torch._dynamo.config
import torch._inductor.config
from torch._dynamo.utils import counters

torch.manual_seed(0)
torch._logging.set_logs(all=50)
torch._inductor.config.cpp.cxx = (None, "/no/such/g++")
torch._dynamo.config.suppress_errors = True


def f(x):
    return x.sin() + 1


result = torch.compile(f)(torch.randn(8))
graphs = counters["stats"]["unique_graphs"]
print("no error, a result of", len(result), "numbers, and", graphs, "graphs compiled")
