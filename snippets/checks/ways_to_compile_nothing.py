import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x = torch.randn(4, 8)
graphs = {}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()

    def embed(self, x):
        return self.linear(x)


def case(name, use):
    counter = CompileCounter()  # a backend that only counts graphs
    use(Model(), counter)
    graphs[name] = counter.frame_count
    print(f"{name:22} {graphs[name]} graphs")


def force_eager(model, backend):
    compiled = torch.compile(model, backend=backend)
    with torch.compiler.set_stance("force_eager"):
        compiled(x)


case("never_called", lambda m, b: torch.compile(m, backend=b))
case("result_thrown_away", lambda m, b: (torch.compile(m, backend=b), m(x)))
case("another_method", lambda m, b: torch.compile(m, backend=b).embed(x))
case("disabled", lambda m, b: torch.compile(m, backend=b, disable=True)(x))
case("stance_force_eager", force_eager)
