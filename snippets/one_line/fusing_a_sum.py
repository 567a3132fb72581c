import re

import torch
from torch._inductor.utils import run_and_get_code

torch.manual_seed(0)
torch.set_num_threads(1)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def summed(x):
    return gelu(x).sum()


def divided(x):
    y = gelu(x)
    return y / y.sum()


def count(function):
    x = torch.randn(1000, 1000)
    _, generated = run_and_get_code(torch.compile(function), x)
    program = "".join(generated)
    kernels = re.findall(r"^ +cpp_fused\w*\(.*\)$", program, re.MULTILINE)
    loops = re.findall(r"\bfor ?\(int64_t ", program)  # in its C++ part
    return {"kernels": len(kernels), "loops": len(loops)}


counts = {"summed": count(summed), "divided": count(divided)}
for name, row in counts.items():
    print(f"{name:8} {row['kernels']} kernel(s), {row['loops']} loop(s) in C++")
