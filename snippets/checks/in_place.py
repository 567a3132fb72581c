import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x = torch.randn(4, 8)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()


def stock():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU())


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def in_place(model, backend):
    model.compile(backend=backend)
    return model


graphs = {}
for kind, make in (("own_class", Own), ("stock_class", stock)):
    for how in wrapped, in_place:
        counter = CompileCounter()
        torch.compiler.reset()
        how(make(), counter)(x)
        graphs[f"{kind}_{how.__name__}"] = counter.frame_count
        print(f"{kind:12} {how.__name__:9} {counter.frame_count} graphs")
