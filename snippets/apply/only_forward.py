import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x = torch.randn(4, 8)


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(8, 2), nn.Linear(2, 8)

    def encode(self, x):
        return self.down(x).tanh()

    def forward(self, x):
        return self.up(self.encode(x))


def show(name, counter, use):
    before = counter.frame_count
    use()
    graphs[name] = counter.frame_count - before
    print(f"{name:27} {graphs[name]} graphs")


graphs = {}
model, counter = Coder(), CompileCounter()
compiled = torch.compile(model, backend=counter)
show("calling_it", counter, lambda: compiled(x))
show("its_encode", counter, lambda: compiled.encode(x))

model.encode = torch.compile(model.encode, backend=counter)  # the remedy
show("encode_compiled_by_itself", counter, lambda: compiled.encode(x))
