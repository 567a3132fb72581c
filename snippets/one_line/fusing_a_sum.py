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
    _, generated = run_and_get_code(torch.compile(function), torch.randn(1000, 1000))
    program = "".join(generated)
    kernels = re.findall(r"^ +cpp_fused\w*\(.*\)$", program, flags=re.MULTILINE)
    loops = re.findall(r"\bfor ?\(int64_t ", program)  # in the C++ part of the program
    return {"kernels": len(kernels), "loops": len(loops)}


counts = {"summed": count(summed), "divided": count(divided)}
for name, number_of in counts.items():
    print(f"{name:8} {number_of['kernels']} kernel(s), {number_of['loops']} loop(s) in C++")
