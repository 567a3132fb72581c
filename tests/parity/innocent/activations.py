"""A chain of activations whose exponentials come from another library, with its gradient."""

import torch
from torch.nn.functional import gelu, logsigmoid, mish, softplus


def chain(x: torch.Tensor) -> torch.Tensor:
    return mish(gelu(softplus(x) - 1) * 3) + gelu(x, approximate="tanh") - logsigmoid(x)


def main() -> None:
    torch.compile(chain)(torch.randn(3000, requires_grad=True) * 4).sum().backward()


if __name__ == "__main__":
    main()
