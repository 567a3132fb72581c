"""The backward pass computes a value anew from a buffer that the forward pass has changed since.

Source: found by the audit in `programs/vector_quantisation.py`; upstream pytorch#197039.
"""

import torch

NAMES = {"2.13": {"grad/value"}, "2.14": {"grad/value"}, "2.15": {"grad/value"}}


class Moving(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.linspace(0.5, 2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * self.mean.exp()
        self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return scaled


def main() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    torch.compile(Moving())(x).sum().backward()


if __name__ == "__main__":
    main()
