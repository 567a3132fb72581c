import os
import subprocess
import sys
import tempfile
from pathlib import Path

LESSON = """
import time, torch
model = torch.nn.Sequential(torch.nn.Linear(64, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10))
x = torch.randn(32, 64)
start = time.perf_counter()
compiled = torch.compile(model.eval())
wrapped = time.perf_counter()
with torch.no_grad():
    compiled(x)
print(wrapped - start, time.perf_counter() - wrapped)
"""


def new_process(width, folder):
    child = [sys.executable, "-c", LESSON.replace("WIDTH", str(width))]
    env = os.environ | {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", "TMPDIR": folder}
    output = subprocess.run(child, env=env, capture_output=True, check=True).stdout
    wrap, first_call = map(float, output.split())
    return {"wrap": wrap, "first_call": first_call, "total": wrap + first_call}


with tempfile.TemporaryDirectory() as folder:
    cold = new_process(64, folder)
    warm = new_process(64, folder)
    other_model = new_process(48, folder)
    cache_bytes = sum(file.stat().st_size for file in Path(folder, "cache").rglob("*"))
    header_bytes = sum(file.stat().st_size for file in Path(folder).glob("torchinductor_*/**/*.gch"))

print("                        wrap (imports)   first call")
for name, seconds in ("empty cache", cold), ("same model again", warm), ("another model", other_model):
    print(f"{name:22} {seconds['wrap']:11.2f} s {seconds['first_call']:11.2f} s")
cold_over_warm = cold["total"] / warm["total"]
