"""Three tensors are contracted in one einsum, whose order is for each side to choose."""

import torch


def contract(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bik,kl,bjl->bij", x, w, y)


def main() -> None:
    x, y = torch.randn(2, 4, 12, 24, requires_grad=True)
    torch.compile(contract)(x, torch.randn(24, 24, requires_grad=True), y).sum().backward()


if __name__ == "__main__":
    main()
