import statistics

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)


def seconds_per_call(width):
    model = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
    ).eval()
    compiled, x = torch.compile(model), torch.randn(32, width)
    with torch.no_grad():
        compiled(x)
        names = {"label": "MLP", "sub_label": f"{width} wide"}
        timers = [
            Timer("f(x)", globals={"f": f, "x": x}, **names, description=side)
            for side, f in (("eager", model), ("compiled", compiled))
        ]
        rounds = [[timer.timeit(200).median for timer in timers] for _ in range(15)]
    return [statistics.median(side) for side in zip(*rounds)]


per_call = {}
for width in 64, 512:
    eager, compiled = seconds_per_call(width)
    per_call[f"w{width}"] = {"eager": eager, "ratio": eager / compiled}
    print(f"width {width:3}: eager {1e6 * eager:5.1f} µs, compiled {1e6 * compiled:5.1f} µs")
