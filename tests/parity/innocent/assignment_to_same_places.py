"""Eager's threads race for the place that many values are assigned to; no result is the right one."""

import torch


def write(x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[index] = values
    return x


def main() -> None:
    values = torch.arange(100_000.0)
    torch.compile(write)(torch.zeros(50), values.long() % 50, values)


if __name__ == "__main__":
    main()
