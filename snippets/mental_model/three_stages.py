import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

torch.manual_seed(0)
operations = {}


def f(x, w):
    return torch.relu(x * w).sum()


def show(stage, graph_module):
    print(f"\n{stage}")
    calls = [n for n in graph_module.graph.nodes if n.op.startswith("call")]
    for node in calls:
        target = node.target if isinstance(node.target, str) else node.target.__name__
        print(f"    {node} = {target}({', '.join(map(str, node.args))})")
    operations[stage] = len(calls)


def dynamo(graph_module, example_inputs):  # a backend is given Dynamo's graph
    show("dynamo", graph_module)
    return with_autograd(graph_module, example_inputs)


def forward(graph_module, example_inputs):
    show("aot_forward", graph_module)
    return make_boxed_func(graph_module.forward)


def backward(graph_module, example_inputs):
    show("aot_backward", graph_module)
    return make_boxed_func(graph_module.forward)


with_autograd = aot_autograd(fw_compiler=forward, bw_compiler=backward)
x, w = torch.randn(1024), torch.randn(1024, requires_grad=True)
total = torch.compile(f, backend=dynamo)(x, w)
print("\nthe forward pass has run")
total.backward()
