import os
import subprocess
import sys

PROGRAM = """
import torch
from torch._inductor import metrics
torch.compile(lambda x: x.sin() + 1)(torch.randn(64))
print(metrics.generated_kernel_count)
"""


def kernels(**variables):
    """Kernels that Inductor wrote, in a new process with these variables set."""
    return int(
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )


inductor_kernels = {
    "TORCH_COMPILE_BACKEND": kernels(TORCH_COMPILE_BACKEND="eager"),
    "TORCH_COMPILE_OVERRIDE_BACKENDS": kernels(TORCH_COMPILE_OVERRIDE_BACKENDS=">=0:eager"),
}
for name, count in inductor_kernels.items():
    print(f"{name:32} {count} kernels by Inductor")
