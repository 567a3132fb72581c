import re
import statistics
import time

import torch
import torch._inductor.config
import torch.nn as nn
from torch._inductor.utils import run_and_get_code
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 512)


def measure(name, slope, freezing=False, **arguments):
    # each row has its own slope, so its own C++ source and its own kernel
    layers = nn.Linear(512, 512), nn.LeakyReLU(slope), nn.Linear(512, 512)
    model = nn.Sequential(*layers).eval()
    with torch._inductor.config.patch(freezing=freezing):
        compiled = torch.compile(model, **arguments)
        start = time.perf_counter()
        _, sources = run_and_get_code(compiled, x)
        first_call = time.perf_counter() - start
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label=name, description=side)
        for side, f in (("eager", model), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(20).median for timer in timers] for _ in range(15)]
    eager, later = (statistics.median(side) for side in zip(*rounds))
    kernel = r"(extern_kernels\.\w+|_mkl_linear|cpp_fused\w+)(?:\.default)?\("
    calls = " ".join(re.findall(kernel, sources[0]))
    return {"first_call": first_call, "ratio": eager / later, "calls": calls}


with torch.no_grad():
    torch.compile(lambda t: t + 1)(x)  # pays for imports and toolchain
    modes = {
        "default": measure("default", 0.1),
        "reduce_overhead": measure("reduce-overhead", 0.2, mode="reduce-overhead"),
        "max_autotune": measure("max-autotune", 0.3, mode="max-autotune"),
        "freezing": measure("freezing", 0.4, freezing=True),
    }
for name, row in modes.items():
    print(f"{name:16}{row['first_call']:5.2f} s  eager/compiled {row['ratio']:.2f}")
    print("    ", row["calls"])
distinct = {row["calls"] for name, row in modes.items() if name != "freezing"}
kernels_of_the_modes = "the same" if len(distinct) == 1 else "not the same"
