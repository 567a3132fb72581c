import torch
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
graphs = {}


def ten_steps(name, lr, change):
    torch.compiler.reset()
    counter = CompileCounter()
    weight = torch.nn.Parameter(torch.randn(16))
    optimizer = torch.optim.Adam([weight], lr=lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    step = torch.compile(optimizer.step, backend=counter)
    for _ in range(10):
        weight.grad = torch.randn(16)
        step()
        if change:
            scheduler.step()
    graphs[name] = counter.frame_count
    print(f"{name:16} {graphs[name]} graphs in ten steps")


ten_steps("constant", 0.01, change=False)
ten_steps("float_changing", 0.01, change=True)
ten_steps("tensor_changing", torch.tensor(0.01), change=True)
