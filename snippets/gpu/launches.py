import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


x = torch.randn(1_000_000, device="cuda")
fast_gelu = torch.compile(gelu)
fast_gelu(x)  # the first call compiles

launches, device_seconds = {}, {}
for name, function in (("eager", gelu), ("compiled", fast_gelu)):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as run:
        function(x)
        torch.cuda.synchronize()
    kernels = [e for e in run.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    launches[name] = len(kernels)
    device_seconds[name] = sum(e.device_time_total for e in kernels) / 1e6
    print(f"{name:9} {launches[name]:2} kernels, {1e6 * device_seconds[name]:8.1f} µs on the GPU")
