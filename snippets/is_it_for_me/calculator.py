import statistics
import time

import torch
from torch import nn
from torch.utils.benchmark import Timer

torch.manual_seed(0)
torch.set_num_threads(1)

# ---- your function and its input ------------------------------------------
function = nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
x = torch.randn(8, 64, 128)
calls_per_process = 1_000
# ---------------------------------------------------------------------------

compiled = torch.compile(function)
with torch.no_grad():
    start = time.perf_counter()
    compiled(x)
    first_call = time.perf_counter() - start
    timers = [
        Timer("f(x)", globals={"f": f, "x": x}, label="one layer", description=side)
        for side, f in (("eager", function), ("compiled", compiled))
    ]
    rounds = [[timer.timeit(3).median for timer in timers] for _ in range(20)]

saved = statistics.median(eager - later for eager, later in rounds)
eager = statistics.median(eager for eager, _ in rounds)
calls_to_pay_back = first_call / saved if saved > 0 else float("inf")
pay_back = f"after {calls_to_pay_back:,.0f} calls" if saved > 0 else "never"
gain = calls_per_process * saved - first_call
print(f"first call {first_call:.2f} s; a later one takes eager {1e3 * eager:.3f} ms")
print(f"and saves {1e3 * saved:+.3f} ms of it: paid back {pay_back}")
print(f"{calls_per_process:,} calls in one process: {gain:+.2f} s saved")
