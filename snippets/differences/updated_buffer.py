import torch
from torch import nn


class Scaled(nn.Module):
    """Scales its input by an average, then moves the average."""

    def __init__(self, how):
        super().__init__()
        self.register_buffer("average", torch.ones(2))
        self.how = how

    def forward(self, x):
        average = self.average.clone() if self.how == "clone" else self.average
        y = x * (2 * average)  # so the gradient of x is twice the average: 2
        if self.how == "new_tensor":
            self.average = self.average * 10
        else:
            self.average.mul_(10)
        return y


def gradient(module):
    x = torch.ones(2, requires_grad=True)
    module(x).sum().backward()
    return x.grad.tolist()


gradients = {}
for how in ("in_place", "clone", "new_tensor"):
    gradients[how] = [gradient(Scaled(how)), gradient(torch.compile(Scaled(how)))]
    print(f"{how:10}  eager {gradients[how][0]}  compiled {gradients[how][1]}")
