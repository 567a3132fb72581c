"""The variance of numbers that differ in their last digits only is made of rounding errors."""

import torch


def spread(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    by_definition = (x.square().mean(-1) - x.mean(-1).square()).sqrt()
    return x.var(-1), by_definition.nan_to_num()


def main() -> None:
    torch.compile(spread)(1000 + torch.randn(8, 1025) * 1e-3)


if __name__ == "__main__":
    main()
