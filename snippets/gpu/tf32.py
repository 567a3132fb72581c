import torch

torch.manual_seed(0)
x, w = torch.randn(512, 2048, device="cuda"), torch.randn(2048, 512, device="cuda")


def f(x, w):
    return torch.relu(x @ w)


truth = f(x.double(), w.double())
errors = {}
for precision in "highest", "high":
    torch.set_float32_matmul_precision(precision)
    torch.compiler.reset()
    for name, function in (("eager", f), ("compiled", torch.compile(f))):
        error = (function(x, w) - truth).abs().max().item()
        errors[f"{precision}_{name}"] = f"{error:.1e}"
        print(f"{precision:8} {name:9} largest error against float64 {error:.1e}")
