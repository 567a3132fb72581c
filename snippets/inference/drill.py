import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
counter = CompileCounter()
compiled = torch.compile(nn.Linear(8, 2).eval(), backend=counter)
new_graphs = {}


def request(name, x, context=torch.inference_mode):
    before = counter.frame_count
    with context():
        compiled(x)
    new_graphs[name] = counter.frame_count - before
    print(f"{name:20} {new_graphs[name]} new graphs")


for size in 8, 4, 1:
    request(f"warm_up_{size}", torch.randn(size, 8))

request("batch_of_1000", torch.randn(1000, 8))
request("transposed", torch.randn(8, 5).t())
request("transposed_again", torch.randn(8, 6).t())
request("under_no_grad", torch.randn(3, 8), torch.no_grad)
request("asks_for_gradients", torch.randn(3, 8, requires_grad=True))
request("three_dimensions", torch.randn(2, 3, 8))
