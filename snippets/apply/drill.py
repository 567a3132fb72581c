import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x = torch.randn(4, 8)
graphs = {}


class Parent(nn.Module):
    def __init__(self, child):
        super().__init__()
        self.child, self.head = child, nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.child(x).relu())


def count(name, compile_child, compile_parent):
    torch.compiler.reset()
    counter = CompileCounter()
    child = nn.Linear(8, 8)
    parent = Parent(torch.compile(child, backend=counter) if compile_child else child)
    model = torch.compile(parent, backend=counter) if compile_parent else parent
    model(x)
    graphs[name] = {"graphs": counter.frame_count, "operations": counter.op_count}
    print(f"{name:12} {counter.frame_count} graphs, {counter.op_count} operations")


count("child_only", True, False)
count("parent_only", False, True)
count("both", True, True)
