import re

import torch
from torch._inductor.utils import run_and_get_code

torch.manual_seed(0)
torch.set_num_threads(1)


def f(x, w):
    return torch.relu(x * w).sum()


x, w = torch.randn(1024), torch.randn(1024)
_, programs = run_and_get_code(torch.compile(f), x, w)

kernels = re.findall(r"^cpp_fused\w+", programs[0], re.MULTILINE)
loop = re.search(r" *for\(int64_t.*?(?=\n *tmp_acc0 = )", programs[0], re.DOTALL)[0]
loops = loop.count("for(int64_t")
print(kernels[0])
for line in loop.splitlines():
    line = re.sub(r"static_cast<int64_t>\((\w+?)L?\)", r"\1", line)  # shorter to read
    print(line.replace("at::vec::", "")[12:])
