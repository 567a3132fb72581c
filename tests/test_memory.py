"""A call is audited within three times the memory of the program, further runs of eager included."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import re
import torch

def peak():
    # Not getrusage, whose maximum a process inherits from the one that started it.
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

# In another order than eager's, so that all rules are asked.
f = torch.compile(lambda x: torch.softmax(x, 1) * x.sum(1, keepdim=True), dynamic=True)
f(torch.randn(300, 40))
before = peak()
y = f(torch.randn(9000, 9000))
print(peak() - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="the peak of one process is read from /proc, which only Linux has",
)
def test_an_audit_needs_at_most_three_times_the_memory(tmp_path):
    script = tmp_path / "large.py"
    script.write_text(PROGRAM)

    def grown(*command: str) -> int:
        done = subprocess.run(
            [sys.executable, *command, str(script)], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert grown("-m", "measured", "audit") <= 3 * grown()
