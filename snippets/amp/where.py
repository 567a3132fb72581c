import torch
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x, w = torch.randn(32, 64), torch.randn(64, 64)
dtypes, graphs = {}, {}


def f(x):
    return torch.relu(x @ w).sum(-1)


def with_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return f(x)


def across(x):  # one operation outside, one inside, one outside
    y = x @ w
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = y @ w
    return y @ w.to(y.dtype)


def compare(name, compiled_side, eager_side, counter):
    of_compiled, of_eager = compiled_side(x), eager_side(x)
    torch.testing.assert_close(of_compiled, of_eager)  # same dtype, and close
    dtypes[name] = str(of_compiled.dtype).removeprefix("torch.")
    graphs[name] = counter.frame_count
    print(f"{name:8} {dtypes[name]:9} {graphs[name]} graph")


for name, function in (("inside", with_autocast), ("across", across)):
    counter = CompileCounter()
    compare(name, torch.compile(function, backend=counter), function, counter)

counter = CompileCounter()
compiled = torch.compile(f, backend=counter)
with torch.autocast("cpu", dtype=torch.bfloat16):
    compare("outside", compiled, f, counter)
compare("without", compiled, f, counter)
