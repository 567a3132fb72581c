import torch
import torch._inductor.config

torch.manual_seed(0)
x = torch.randn(256, 1024).bfloat16()


def f(x):
    y = torch.tanh(0.8 * (x + 0.045 * x * x * x))
    return 0.5 * x * (1 + y) * torch.sigmoid(x) + x.sin()


truth = f(x.double())
compiled = torch.compile(f)(x)
torch.compiler.reset()
with torch._inductor.config.patch(emulate_precision_casts=True):
    emulated = torch.compile(f)(x)

errors = {}
for name, result in (("eager", f(x)), ("compiled", compiled), ("emulated", emulated)):
    error = (result.double() - truth).abs()
    errors[name] = f"{error.max():.4f}"
    print(f"{name:9} largest error against float64 {error.max():.4f}, mean {error.mean():.6f}")
like_eager = "yes" if torch.equal(emulated, f(x)) else "no"
print("emulated equals eager, bit by bit:", like_eager)
