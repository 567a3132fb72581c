"""A gradient taken inside with create_graph can not be differentiated again outside.

Eager does it. Compiled code says so at the backward pass, and not at the call.

Source: pytorch#181581.
"""

import contextlib

import torch

NAMES = {
    "2.13": {"exception-only-in-compiled"},
    "2.14": {"exception-only-in-compiled"},
    "2.15": {"exception-only-in-compiled"},
}


def slope(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = (x @ y).relu().sum()
    (gradient,) = torch.autograd.grad(total, x, create_graph=True)
    return gradient * 2


def main() -> None:
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    gradient = torch.compile(slope)(x, y)
    with contextlib.suppress(RuntimeError):
        gradient.sum().backward()


if __name__ == "__main__":
    main()
