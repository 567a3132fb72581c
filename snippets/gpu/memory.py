import torch

torch.manual_seed(0)
x = torch.randn(4_000_000, device="cuda", requires_grad=True)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


peak = {}
for name, function in (("eager", gelu), ("compiled", torch.compile(gelu))):
    for _ in range(2):  # the second turn is warm
        x.grad = None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function(x).sum().backward()
        peak[name] = torch.cuda.max_memory_allocated() - before
    print(f"{name:9} {peak[name] / 2**20:7.1f} MiB above what was allocated before")
