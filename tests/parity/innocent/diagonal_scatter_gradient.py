"""Gradients of a diagonal written into a matrix are the same; the sum is added in another order.

Source: pytorch#182012.
"""

import torch


def total(matrix: torch.Tensor, diagonal: torch.Tensor) -> torch.Tensor:
    return torch.diagonal_scatter(matrix, diagonal).sum()


def main() -> None:
    matrix, diagonal = torch.randn(5, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    torch.compile(total)(matrix, diagonal).backward()


if __name__ == "__main__":
    main()
