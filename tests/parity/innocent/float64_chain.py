"""float64 has no wider reference: its functions differ in their last digits, and sums amplify that."""

import torch


def chain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = (x.sin().exp() + x.square().log1p()).rsqrt()
    return y, (y - y.mean()).sum()


def main() -> None:
    torch.compile(chain)(torch.randn(4001, dtype=torch.float64))


if __name__ == "__main__":
    main()
