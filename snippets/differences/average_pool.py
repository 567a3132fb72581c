import torch
from torch import nn


def gradient(model):
    x = torch.ones(1, 1, 3, 3, requires_grad=True)
    model(x).sum().backward()
    return x.grad[0, 0].tolist()


pools = {
    "ceil_mode": nn.AvgPool2d(2, ceil_mode=True),
    "and count_include_pad=False": nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),
}
corner = {}
for name, pool in pools.items():
    eager, compiled = gradient(pool), gradient(torch.compile(pool))
    corner[name] = [eager[2][2], compiled[2][2]]
    print(name)
    for left, right in zip(eager, compiled):
        print("  eager", left, " compiled", right)
