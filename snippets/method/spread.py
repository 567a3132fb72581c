import torch
from torch.utils.benchmark import Timer

torch.set_num_threads(1)
x = torch.randn(256, 256)
timer = Timer("x @ x", globals={"x": x}, label="256 x 256 matmul")
measurement = timer.blocked_autorange(min_run_time=1.0)

samples = sorted(measurement.times)
n = len(samples)
minimum_seconds = samples[0]
median_seconds = measurement.median
maximum_seconds = samples[-1]
spread = measurement.iqr / measurement.median
slowest_over_fastest = maximum_seconds / minimum_seconds
print(f"min {minimum_seconds * 1e6:.1f} us, median {median_seconds * 1e6:.1f} us, n = {n}")
print(f"IQR / median {spread:.3f}, slowest / fastest {slowest_over_fastest:.2f}")
