"""`python -m measured.costs`: how much longer a program takes under the audit, in one run.

Each program times a loop of its own, alone and under the audit in turns. Nothing else may run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from measured import committed, script
from measured.run import measurement_lock

_START = """
import time
import torch

torch.set_num_threads(1)
"""

_LOOP = (
    _START
    + """
f = torch.compile(lambda x: torch.sin(x) + 1)
x = torch.randn({elements})
for _ in range(10):
    f(x)
start = time.perf_counter()
for _ in range({calls}):
    f(x)
print((time.perf_counter() - start) / {calls})
"""
)

_BENCHMARK = (
    _START
    + """
from torch.utils.benchmark import Timer

f = torch.compile(lambda x: torch.sin(x) + 1)
x = torch.randn({elements})
f(x)
timer = Timer("f(x)", globals={{"f": f, "x": x}})
timer.timeit(10)
print(timer.timeit({calls}).mean)
"""
)

_TRAINING = (
    _START
    + """
model = torch.nn.Sequential(
    torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(),
    torch.nn.Linear(256, 10),
)
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn({elements}, 256), torch.randint(10, ({elements},))

def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(compiled(x), y).backward()
    optimizer.step()

for _ in range(10):
    step()
start = time.perf_counter()
for _ in range({calls}):
    step()
print((time.perf_counter() - start) / {calls})
"""
)

PROGRAMS: dict[str, tuple[str, int, int]] = {
    "loop over a small function": (_LOOP, 100_000, 1 << 8),
    "loop over a larger function": (_LOOP, 10_000, 1 << 16),
    "benchmark of a small function": (_BENCHMARK, 100_000, 1 << 8),
    "benchmark of a larger function": (_BENCHMARK, 10_000, 1 << 16),
    "training loop": (_TRAINING, 1_000, 128),
}
"""Name -> program, which prints the seconds that a call takes; calls in its loop; size of its
input."""


def row(name: str, calls: int, alone: list[float], audited: list[float]) -> dict[str, Any]:
    """What a record says of one program. Times in seconds per call; the ratio is of the medians."""
    before, under = statistics.median(alone), statistics.median(audited)
    return {
        "name": name,
        "calls": calls,
        "alone_seconds": before,
        "audited_seconds": under,
        "ratio": under / before,
        "alone_samples": alone,
        "audited_samples": audited,
    }


def _alone(path: Path) -> float:
    done = subprocess.run([sys.executable, path], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def _audited(path: Path) -> float:
    with tempfile.TemporaryFile() as printed:
        outcome = script.audit(str(path), [], timeout=None, output=printed.fileno())
        if not outcome.run.with_verdict("agrees") or outcome.run.status:
            raise click.ClickException(script.text(outcome))
        printed.seek(0)
        return float(printed.read())


def _measured(name: str, rounds: int, folder: Path) -> dict[str, Any]:
    program, calls, elements = PROGRAMS[name]
    path = folder / "program.py"
    path.write_text(program.format(calls=calls, elements=elements), encoding="utf-8")
    alone, audited = [], []
    for _ in range(rounds):
        alone.append(_alone(path))
        audited.append(_audited(path))
    return row(name, calls, alone, audited)


def _shown(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for each in rows:
        yield f"{each['ratio']:.2f} {each['alone_seconds']:.3g} s {each['name']}"


@click.command()
@click.option("--only", multiple=True, help="Programs whose name holds one of these texts.")
@click.option("--rounds", default=5, show_default=True, help="How often each program runs.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON here.")
def main(only: tuple[str, ...], rounds: int, out: Path | None) -> None:
    """Time programs alone and under the audit, in turns."""
    names = [name for name in PROGRAMS if not only or any(text in name for text in only)]
    with tempfile.TemporaryDirectory(prefix="measured-") as folder, measurement_lock():
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder, "inductor"))
        rows = [_measured(name, rounds, Path(folder)) for name in names]
    for line in _shown(rows):
        click.echo(line)
    if out:
        committed.write(committed.facts() | {"rounds": rounds, "programs": rows}, out)


if __name__ == "__main__":
    main()
