import torch
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
counter = CompileCounter()
compiled = torch.compile(torch.nn.Linear(8, 8), backend=counter)
x = torch.randn(4, 8)
graphs_after = {}


def call(name, **arguments):
    with torch.autocast("cpu", **arguments):
        compiled(x)
    graphs_after[name] = counter.frame_count
    print(f"{name:14} {counter.frame_count} graphs")


call("off", enabled=False)
call("bfloat16", dtype=torch.bfloat16)
call("float16", dtype=torch.float16)
call("off_again", enabled=False)
call("no_cache", dtype=torch.bfloat16, cache_enabled=False)
