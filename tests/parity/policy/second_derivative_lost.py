"""A gradient taken inside with create_graph can not be differentiated again outside.

Eager does it. Compiled code says so at the program's backward pass, which ends there: no gradient
is sent that could be compared, and the program's own exception tells its author. The audit adds
nothing.

Source: pytorch#181581.
"""

import contextlib

import torch

NAMES = {
    "2.13": set(),
    "2.14": set(),
    "2.15": set(),
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
