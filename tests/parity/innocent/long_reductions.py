"""Sum, mean and deviation of a million numbers depend on the order of the additions."""

import torch


def moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x.sum(), x.mean(), x.std()


def main() -> None:
    torch.compile(moments)(torch.rand(1_000_001))


if __name__ == "__main__":
    main()
