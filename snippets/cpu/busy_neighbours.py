import itertools
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

torch.manual_seed(0)
widths = itertools.count(32)  # every model is new, so every first call compiles


def first_call_seconds():
    width = next(widths)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    compiled, x = torch.compile(model.eval()), torch.randn(32, 64)
    start = time.perf_counter()
    with torch.no_grad():
        compiled(x)
    seconds = time.perf_counter() - start
    torch.compiler.reset()
    return seconds


first_call_seconds()  # imports, toolchain, set-up: paid here, counted elsewhere
quiet = statistics.median(first_call_seconds() for _ in range(3))

neighbours = 2 * os.cpu_count()
spin = [sys.executable, "-c", "while True: pass"]
busy_loops = [subprocess.Popen(spin) for _ in range(neighbours)]
try:
    busy = statistics.median(first_call_seconds() for _ in range(3))
finally:
    for process in busy_loops:
        process.kill()
        process.wait()

slowdown = busy / quiet
print(f"first call of a new model, quiet machine       {quiet:6.2f} s")
print(f"the same, two busy processes per core          {busy:6.2f} s")
