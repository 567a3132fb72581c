import re

import torch
from torch._inductor.utils import run_and_get_code
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(0)


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations, self.passes = [], 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        self.operations.append(op.overloadpacket.__name__)
        self.passes += sum(isinstance(t, torch.Tensor) and t.numel() > 1 for t in (*args, result))
        return result


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


x = torch.randn(1_000_000)
with Count() as eager:
    gelu(x)
eager_operations, eager_passes = len(eager.operations), eager.passes
print("eager:   ", *eager.operations)

_, generated = run_and_get_code(torch.compile(gelu), x)  # the Python that Inductor wrote
kernel_calls = re.findall(r"^ +(cpp_fused\w*\(.*\))$", generated.pop(), flags=re.MULTILINE)
compiled_kernels, compiled_passes = len(kernel_calls), sum(call.count(",") + 1 for call in kernel_calls)
print("compiled:", *kernel_calls)
