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
        tensors = [t for t in (*args, result) if isinstance(t, torch.Tensor)]
        self.passes += sum(t.numel() > 1 for t in tensors)
        return result


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


x = torch.randn(1_000_000)
with Count() as eager:
    gelu(x)
eager_operations, eager_passes = len(eager.operations), eager.passes
print("eager:   ", *eager.operations)

_, generated = run_and_get_code(torch.compile(gelu), x)  # what Inductor wrote
kernel_calls = re.findall(r"^ +(cpp_fused\w*\(.*\))$", generated.pop(), re.MULTILINE)
compiled_kernels = len(kernel_calls)
compiled_passes = sum(call.count(",") + 1 for call in kernel_calls)  # one per argument
print("compiled:", *kernel_calls)
