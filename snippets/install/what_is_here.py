import importlib.util
import platform
import subprocess

import torch
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torch.utils._triton import has_triton

compiler = get_cpp_compiler()
version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
here = {
    "system": f"{platform.system()} on {platform.machine()}",
    "python": platform.python_version(),
    "torch": str(torch.__version__),
    "compiler": version.splitlines()[0],
    "instructions": str(pick_vec_isa()),
    "openmp": "yes" if torch.backends.openmp.is_available() else "no",
    "triton_package": "yes" if importlib.util.find_spec("triton") else "no",
    "triton_can_be_used": "yes" if has_triton() else "no",
    "cuda_device": "yes" if torch.cuda.is_available() else "no",
}
for name, value in here.items():
    print(f"{name:19} {value}")
