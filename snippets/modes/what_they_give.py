import re
import statistics
import time

import torch
from torch._inductor.utils import run_and_get_code
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x, w = torch.randn(256, 1024), torch.randn(1024, 64)


def make(shift):  # a constant of its own, so each mode builds its own kernels
    def f(x):
        gate = torch.tanh(0.7978845608 * (x + shift * x**3))
        return (0.5 * x * (1 + gate)) @ w

    return f


torch.compile(lambda t: t + 1)(x)  # pays for imports and toolchain
modes, kernels = {}, {}
names = "default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune", "lite"
for number, mode in enumerate(names):
    shift = 0.0447 + number / 1000
    function = make(shift)
    compiled = torch.compile(function, mode=mode)
    start = time.perf_counter()
    _, (source,) = run_and_get_code(compiled, x)
    first_call = time.perf_counter() - start

    source = source.replace(str(shift), "shift")
    kernels[mode] = re.findall(r"r'''(.*?)'''", source, re.DOTALL)
    calls = re.findall(r"= torch\.ops\.aten\.|extern_kernels\.\w+\(|^ +cpp_\w+\(", source, re.M)
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label=mode, description=side)
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(5).median for timer in timers] for _ in range(15)]
    ratio = statistics.median(eager / later for eager, later in rounds)
    same = "yes" if kernels[mode] == kernels["default"] else "no"
    row = {"first_call": first_call, "ratio": ratio, "calls": len(calls), "same": same}
    modes[mode.replace("-", "_")] = row
    print(f"{mode:27}{first_call:5.2f} s {ratio:5.2f}x {len(calls):3} calls  {same}")
