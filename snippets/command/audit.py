import subprocess
import sys
from pathlib import Path

Path("pool.py").write_text("""\
import sys

import torch

pool = torch.nn.AvgPool2d(3, stride=2, ceil_mode="--ceil" in sys.argv)


@torch.compile
def loss(image):
    return pool(image).square().sum()


image = torch.linspace(0, 1, 36).reshape(1, 1, 6, 6).requires_grad_()
loss(image).backward()
print(f"gradient at the last pixel: {image.grad[0, 0, 5, 5]:.3f}")
""")

exit_codes = {}
for name, options in {"without": [], "with_ceil": ["--ceil"]}.items():
    command = ["measured", "audit", "--no-locate", "pool.py", *options]
    print("$", *command, flush=True)
    exit_codes[name] = subprocess.run([sys.executable, "-m", *command]).returncode
    print("$ echo $?", exit_codes[name], sep="\n", end="\n\n")
