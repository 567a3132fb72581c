import json
import subprocess
import sys
from pathlib import Path

Path("off_by_a_bit.py").write_text("""\
import torch


def spoil(graph, inputs):  # A backend with a bug.
    return lambda *args: [out * 1.001 for out in graph(*args)]


@torch.compile(backend=spoil)
def wave(x):
    return x.sin()


wave(torch.linspace(0, 1, 5))
""")

command = [sys.executable, "-m", "measured", "audit", "--json", "off_by_a_bit.py"]
report = json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)
print(json.dumps(report, indent=2))
