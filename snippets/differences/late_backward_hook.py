import torch
from torch import nn

layer = nn.Linear(2, 2, bias=False)
nn.init.ones_(layer.weight)
compiled = torch.compile(layer)


def gradient(model):
    x = torch.ones(1, 2, requires_grad=True)
    model(x).sum().backward()
    return x.grad[0, 0].item()


def times_ten(module, grad_input, grad_output):
    return (grad_input[0] * 10,)


gradients = {"before_the_hook": [gradient(layer), gradient(compiled)]}
layer.register_full_backward_hook(times_ten)
gradients["with_the_hook"] = [gradient(layer), gradient(compiled)]
torch.compiler.reset()
gradients["compiled_again"] = [gradient(layer), gradient(compiled)]

print("                 eager  compiled")
for when, (eager, fast) in gradients.items():
    print(f"{when:15} {eager:6} {fast:9}")
