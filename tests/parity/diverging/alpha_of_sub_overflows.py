"""inf - 2 * 3e38 is infinite in eager, which rounds once, and NaN where 2 * 3e38 overflows first."""

import torch

NAMES = {"2.13": {"nan"}, "2.14": {"nan"}, "2.15": {"nan"}}


def differences(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sub(x, y, alpha=2), torch.rsub(y, x, alpha=2)


def main() -> None:
    # Enough elements for the vectorised loop and for the scalar one that finishes it.
    torch.compile(differences)(torch.full((19,), float("inf")), torch.full((19,), 3e38))


if __name__ == "__main__":
    main()
