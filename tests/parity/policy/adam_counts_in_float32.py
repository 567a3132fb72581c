"""A compiled Adam step corrects its averages in float32, from a tensor that holds the step's number.

Eager reads the number and computes 1 - 0.999 ** step as Python does. In float32 too few digits are
left of it in the first steps to round like eager, which has its own branch for being compiled.
"""

import torch

NAMES = {"2.13": {"state/value"}, "2.14": {"state/value"}, "2.15": {"state/value"}}


def main() -> None:
    torch._dynamo.reset()
    weight = torch.nn.Parameter(torch.zeros(4))
    weight.grad = torch.randn(4)
    adam = torch.optim.Adam([weight], lr=0.01)
    torch.compile(adam.step)()


if __name__ == "__main__":
    main()
