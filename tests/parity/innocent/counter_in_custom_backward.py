"""A count kept in a custom backward is no state of the call, whose forward never touches it."""

import torch

passes: list[int] = []


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> torch.Tensor:
        passes.append(1)
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def square(x: torch.Tensor) -> torch.Tensor:
    return Square.apply(x)


def main() -> None:
    passes.clear()
    compiled = torch.compile(square)
    for _ in range(3):
        compiled(torch.randn(3, requires_grad=True)).sum().backward()


if __name__ == "__main__":
    main()
