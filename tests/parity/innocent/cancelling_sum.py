"""A sum that all but cancels has no correct digit in common with the same sum in another order."""

import torch


def residue(x: torch.Tensor) -> torch.Tensor:
    return (x - x.flip(0) * 0.9999999).sum()


def main() -> None:
    torch.compile(residue)(torch.randn(100_000) * 100)


if __name__ == "__main__":
    main()
