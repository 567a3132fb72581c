import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)


def f(x, w):
    return torch.relu(x * w).sum()


x, w = torch.randn(1_000_000), torch.randn(1_000_000)
compiled = torch.compile(f)
compiled(x, w)  # the first call compiles; the profile is of a later one

allocated = {}
for name, function in (("eager", f), ("compiled", compiled)):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        function(x, w)
    allocated[name] = sum(max(e.self_cpu_memory_usage, 0) for e in run.events())
    print(f"{name:9} allocates {allocated[name]:9,} bytes")
