import time

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 10),
)
model.eval()
x = torch.randn(32, 64)

start = time.perf_counter()
compiled = torch.compile(model)
with torch.no_grad():
    out_compiled = compiled(x)
compile_s = time.perf_counter() - start

with torch.no_grad():
    out_eager = model(x)

print("Output shape:", out_compiled.shape)
print("Outputs equal:", torch.equal(out_eager, out_compiled))
print(f"First compiled call took: {compile_s:.0f} s")
