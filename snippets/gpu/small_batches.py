import statistics

import torch
from torch import nn
from torch.utils.benchmark import Timer

torch.manual_seed(0)
layers = [layer for _ in range(12) for layer in (nn.Linear(256, 256), nn.GELU())]
model = nn.Sequential(*layers).cuda().eval()
x = torch.randn(4, 256, device="cuda")
ratios = {}
with torch.no_grad():
    for mode in "default", "reduce-overhead":
        torch.compiler.reset()
        compiled = torch.compile(model, mode=mode)
        for _ in range(3):  # CUDA graphs are recorded on a later call than the first
            compiled(x)
        timers = [
            Timer("f(x)", globals={"f": f, "x": x}, label=mode, description=side)
            for side, f in (("eager", model), ("compiled", compiled))
        ]
        rounds = [[timer.timeit(50).median for timer in timers] for _ in range(15)]
        ratio = statistics.median(eager / later for eager, later in rounds)
        ratios[mode.replace("-", "_")] = ratio
        print(f"{mode:16} eager / compiled {ratio:5.2f}x")
