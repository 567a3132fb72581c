import torch

torch.manual_seed(0)
used = []


def first(graph_module, example_inputs):
    used.append("first")
    return graph_module.forward


def second(graph_module, example_inputs):
    used.append("second")
    return graph_module.forward


def f(x):
    return x.sin()


torch.compiler.set_default_backend(first)
early = torch.compile(f)
torch.compiler.set_default_backend(second)
late = torch.compile(f)
named = torch.compile(f, backend=first)

answers = {}
for name, compiled in (("early", early), ("late", late), ("named", named)):
    torch.compiler.reset()
    compiled(torch.randn(3))
    answers[name] = used[-1]
    print(f"{name:6} used the {used[-1]} backend")

torch.compiler.set_default_backend(None)
default = torch.compiler.get_default_backend()
print("default after None:", default)
