import os
import subprocess
import sys
import tempfile
from pathlib import Path

LESSON = """
import time, torch
from torch import nn
model = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
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
    cache = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", "TMPDIR": folder}
    done = subprocess.run(child, env=os.environ | cache, capture_output=True, check=True)
    wrap, first_call = map(float, done.stdout.split())
    return {"wrap": wrap, "first_call": first_call, "total": wrap + first_call}


def size(files):
    return sum(file.stat().st_size for file in files)


with tempfile.TemporaryDirectory() as folder:
    cold = new_process(64, folder)
    warm = new_process(64, folder)
    other_model = new_process(48, folder)
    cache_bytes = size(Path(folder).glob("cache/**/*"))
    header_bytes = size(Path(folder).glob("torchinductor_*/**/*.gch"))

print("                        wrap (imports)   first call")
rows = {"empty cache": cold, "same model again": warm, "another model": other_model}
for name, row in rows.items():
    print(f"{name:22} {row['wrap']:11.2f} s {row['first_call']:11.2f} s")
cold_over_warm = cold["total"] / warm["total"]
