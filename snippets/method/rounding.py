import torch

torch.manual_seed(0)
x = torch.randn(1_000_000)


def total(x):
    return x.sum()


eager = total(x)
compiled = torch.compile(total)(x)
reference = total(x.double())

ulp = torch.finfo(x.dtype).eps * 2.0 ** torch.frexp(eager).exponent.sub(1).item()
apart_ulp = abs(compiled.double() - eager.double()).item() / ulp
eager_error_ulp = abs(eager.double() - reference).item() / ulp
compiled_error_ulp = abs(compiled.double() - reference).item() / ulp
print(f"eager and compiled are {apart_ulp:.0f} ULP apart")
print(f"from float64, eager is off by {eager_error_ulp:.1f} ULP")
print(f"from float64, compiled is off by {compiled_error_ulp:.1f} ULP")
