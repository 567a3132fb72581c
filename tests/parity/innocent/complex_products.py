"""The real part of a complex product is a difference of two products, and may cancel."""

import torch


def rotate(z: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    product = z * w
    return product, (product * w.conj()).abs()


def main() -> None:
    z, w = torch.randn(2, 1000, dtype=torch.complex64)
    torch.compile(rotate)(z, w)


if __name__ == "__main__":
    main()
