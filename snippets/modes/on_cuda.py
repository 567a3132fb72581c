import statistics
import time

import torch
from torch.utils.benchmark import Timer

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256), torch.nn.GELU()] * 8).cuda().eval()
x = torch.randn(16, 256, device="cuda")
modes = {}
names = "default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune", "lite"
with torch.no_grad():
    for mode in names:
        torch.compiler.reset()
        torch.cuda.reset_peak_memory_stats()
        compiled = torch.compile(model, mode=mode)
        start = time.perf_counter()
        for _ in range(3):  # CUDA graphs are recorded on a later call than the first
            compiled(x)
        torch.cuda.synchronize()
        warm_up = time.perf_counter() - start
        timers = [
            Timer("f(x)", globals={"f": f, "x": x}, label=mode, description=side)
            for side, f in (("eager", model), ("compiled", compiled))
        ]
        rounds = [[timer.timeit(50).median for timer in timers] for _ in range(15)]
        ratio = statistics.median(eager / later for eager, later in rounds)
        peak = torch.cuda.max_memory_allocated()
        row = {"warm_up": warm_up, "ratio": ratio, "peak": peak}
        modes[mode.replace("-", "_")] = row
        print(f"{mode:27} {warm_up:6.2f} s {ratio:5.2f}x {peak / 2**20:8.1f} MiB")
