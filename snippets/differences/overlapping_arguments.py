import torch


def triple_then_add(a, b):
    a.mul_(3)
    return a + b


compiled = torch.compile(triple_then_add)
compiled(torch.ones(3), torch.ones(3))  # two that share nothing


def on_neighbours(function, copy=False):
    row = torch.ones(4)
    a, b = row[:3], row[1:]  # two views that share two numbers
    return function(a, b.clone() if copy else b).tolist()


results = {"eager": on_neighbours(triple_then_add), "compiled": on_neighbours(compiled)}
torch.compiler.reset()
results["compiled_again"] = on_neighbours(compiled)
results["eager_with_a_copy"] = on_neighbours(triple_then_add, copy=True)
results["compiled_with_a_copy"] = on_neighbours(compiled, copy=True)
for name, result in results.items():
    print(f"{name:20} {result}")
