import importlib.util

import torch

here = {
    "cuda_available": "yes" if torch.cuda.is_available() else "no",
    "torch_built_for_cuda": torch.version.cuda or "no",
    "triton_package": "yes" if importlib.util.find_spec("triton") else "no",
    "float32_matmul_precision": torch.get_float32_matmul_precision(),
    "tf32_in_matmul": str(torch.backends.cuda.matmul.allow_tf32),
    "tf32_in_cudnn": str(torch.backends.cudnn.allow_tf32),
}
for name, value in here.items():
    print(f"{name:25} {value}")
