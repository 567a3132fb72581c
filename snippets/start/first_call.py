import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


x = torch.randn(1_000_000)

start = time.perf_counter()
fast_gelu = torch.compile(gelu)  # <- all you type
wrap_seconds = time.perf_counter() - start

from torch._dynamo.utils import counters  # the compiler's own books, loaded by now

graphs_after_wrap = counters["stats"]["unique_graphs"]
print(f"torch.compile {wrap_seconds:9.4f} s   graphs compiled: {graphs_after_wrap}")

call_seconds, graphs_after_call = [], []
for call in (1, 2, 3):
    start = time.perf_counter()
    y = fast_gelu(x)
    call_seconds.append(time.perf_counter() - start)
    graphs_after_call.append(counters["stats"]["unique_graphs"])
    graphs = graphs_after_call[-1]
    print(f"call {call}        {call_seconds[-1]:9.4f} s   graphs compiled: {graphs}")
