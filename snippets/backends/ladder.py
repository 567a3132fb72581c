import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def f(x, w):
    return torch.nn.functional.gelu(x @ w).softmax(-1)


x, w = torch.randn(64, 512), torch.randn(512, 512)
expected = f(x, w)
rows = {}
for backend in "eager", "aot_eager", "inductor":
    torch.compiler.reset()
    compiled = torch.compile(f, backend=backend)
    start = time.perf_counter()
    result = compiled(x, w)
    first_call = time.perf_counter() - start
    same = "same bits" if torch.equal(result, expected) else "within rounding"
    torch.testing.assert_close(result, expected)
    rows[backend] = {"first_call": first_call, "same": same}
    print(f"{backend:10} first call {first_call:6.3f} s   {same}")
