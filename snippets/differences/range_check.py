import torch
from torch.nn.functional import binary_cross_entropy


def loss(probability, target):
    return binary_cross_entropy(probability, target)


def ask(function):
    try:
        return f"loss {function(probability, target).item():.3f}"
    except RuntimeError as error:
        return f"RuntimeError: {error}"


probability = torch.tensor([0.2, 0.9])
target = torch.tensor([0.0, 2.0])  # a label that is no probability
eager, compiled = ask(loss), ask(torch.compile(loss))
print("eager:   ", eager)
print("compiled:", compiled)
