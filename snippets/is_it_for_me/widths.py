import statistics

import torch
from torch import nn
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def block(width):
    return nn.Sequential(
        nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width)
    ).eval()


ratios = {}
with torch.no_grad():
    for width in 32, 128, 512, 1024:
        model, x = block(width), torch.randn(64, width)
        compiled = torch.compile(model, dynamic=False)
        compiled(x)
        calls = 100 if width < 512 else 5
        names = {"label": "a block of a model", "sub_label": f"{width} wide"}
        timers = [
            Timer("f(x)", globals={"f": f, "x": x}, **names, description=side)
            for side, f in (("eager", model), ("compiled", compiled))
        ]
        rounds = [[timer.timeit(calls).median for timer in timers] for _ in range(15)]
        ratio = statistics.median(eager / later for eager, later in rounds)
        ratios[f"w{width}"] = ratio
        print(f"{width:5} wide: eager / compiled {ratio:5.2f}x")
