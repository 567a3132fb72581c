import re
import statistics
import time
from timeit import timeit

import torch
import torch._inductor.config
import torch.nn as nn
from torch._inductor.utils import run_and_get_code

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 512)


def measure(slope, freezing=False, **arguments):
    # every row has its own slope: the C++ source differs, so no row reuses another row's kernel
    model = nn.Sequential(nn.Linear(512, 512), nn.LeakyReLU(slope), nn.Linear(512, 512)).eval()
    with torch._inductor.config.patch(freezing=freezing):
        compiled = torch.compile(model, **arguments)
        start = time.perf_counter()
        _, sources = run_and_get_code(compiled, x)
        first_call = time.perf_counter() - start
    rounds = [[timeit(lambda: f(x), number=20) / 20 for f in (model, compiled)] for _ in range(15)]
    eager, later = (statistics.median(side) for side in zip(*rounds))
    calls = " ".join(re.findall(r"(extern_kernels\.\w+|_mkl_linear|cpp_fused\w+)(?:\.default)?\(", sources[0]))
    return {"first_call": first_call, "later": later, "ratio": eager / later, "calls": calls}


with torch.no_grad():
    torch.compile(lambda t: t + 1)(x)  # imports and toolchain: paid here, not by the first row
    modes = {
        "default": measure(0.1),
        "reduce_overhead": measure(0.2, mode="reduce-overhead"),
        "max_autotune": measure(0.3, mode="max-autotune"),
        "freezing": measure(0.4, freezing=True),
    }
for name, row in modes.items():
    print(f"{name:16}{row['first_call']:6.2f} s  eager/compiled {row['ratio']:.2f}  {row['calls']}")
same_kernels = modes["default"]["calls"] == modes["reduce_overhead"]["calls"] == modes["max_autotune"]["calls"]
