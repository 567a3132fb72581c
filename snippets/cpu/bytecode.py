import os
import subprocess
import sys
import tempfile

IMPORTS = """
import time
start = time.perf_counter()
import torch, torch._dynamo, torch._inductor.compile_fx
print(time.perf_counter() - start)
"""


def import_seconds(folder):
    env = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
    child = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(child, env=env, capture_output=True, check=True)
    return float(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    without_bytecode = import_seconds(folder)  # empty: Python compiles every module
    with_bytecode = import_seconds(folder)

ratio = without_bytecode / with_bytecode
print(f"imports, no .pyc files yet   {without_bytecode:6.2f} s")
print(f"imports, .pyc files present  {with_bytecode:6.2f} s")
