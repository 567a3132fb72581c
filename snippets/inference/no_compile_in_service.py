import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
counter = CompileCounter()
compiled = torch.compile(nn.Linear(8, 2).eval(), backend=counter)
outcomes = {}


def request(name, x, context=torch.inference_mode, service=compiled):
    before = counter.frame_count
    try:
        with context():
            service(x)
        outcomes[name] = f"{counter.frame_count - before} new graphs"
    except RuntimeError as error:
        outcomes[name] = "raises: " + str(error).partition(". filename")[0]
    print(f"{name:19} {outcomes[name]}")


for size in 8, 4, 1:
    request(f"warm_up_{size}", torch.randn(size, 8))

torch.compiler.set_stance("fail_on_recompile")  # from here on, serve
request("batch_of_3", torch.randn(3, 8))
request("transposed", torch.randn(8, 3).t())
request("under_no_grad", torch.randn(3, 8), torch.no_grad)
request("first_call", torch.randn(3, 8), service=torch.compile(torch.sin, backend=counter))
torch.compiler.set_stance("eager_on_recompile")
request("transposed_in_eager", torch.randn(8, 3).t())
