import time

import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

torch.manual_seed(0)
torch.set_num_threads(1)
sizes = [4, 4, 4, 7, 5, 4, 1, 1, 6, 4, 2, 3, 7, 1, 4, 6, 5, 2, 8, 4]  # 20 requests
counter = CompileCounterWithBackend("inductor")


def make_service(slope):
    layers = nn.Linear(256, 256), nn.LeakyReLU(slope), nn.LayerNorm(256), nn.Linear(256, 8)
    return torch.compile(nn.Sequential(*layers).eval(), backend=counter)


@torch.inference_mode()
def serve(service, size):
    start = time.perf_counter()
    service(torch.randn(size, 256))
    return time.perf_counter() - start


without = make_service(0.1)
without_warm_up, waits = [], []
for number, size in enumerate(sizes, start=1):
    graphs = counter.frame_count
    without_warm_up.append(serve(without, size))
    if counter.frame_count > graphs:
        waits.append(number)

torch.compiler.reset()  # the second service knows nothing of the first
warmed = make_service(0.2)
warm_up_seconds = sum(serve(warmed, size) for size in (4, 7, 1))  # before the first request
with_warm_up = [serve(warmed, size) for size in sizes]

slowest_without, slowest_with = max(without_warm_up), max(with_warm_up)
waiting = ", ".join(map(str, waits))
print(f"without: slowest {slowest_without:.4f} s; requests {waiting} compiled")
print(f"with:    slowest {slowest_with:.4f} s, after a warm-up of {warm_up_seconds:.2f} s")
