import torch
from torch import nn


def gradient(model):
    x = torch.ones(1, 1, 3, 3, requires_grad=True)
    model(x).sum().backward()
    return x.grad[0, 0].tolist()


corner = {}
for name, options in {
    "ceil_mode": {},
    "and count_include_pad=False": {"count_include_pad": False},
}.items():
    pool = nn.AvgPool2d(2, ceil_mode=True, **options)
    eager, compiled = gradient(pool), gradient(torch.compile(pool))
    corner[name] = [eager[2][2], compiled[2][2]]
    print(name)
    for left, right in zip(eager, compiled):
        print(f"  eager {left!s:18} compiled {right}")
