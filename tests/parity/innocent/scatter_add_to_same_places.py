"""What many values for one place add up to depends on the order in which they arrive."""

import torch


def histogram(values: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    empty = torch.zeros(7)
    return empty.scatter_add(0, index, values), empty.index_add(0, index, values)


def main() -> None:
    torch.compile(histogram)(torch.randn(40_000), torch.arange(40_000) % 7)


if __name__ == "__main__":
    main()
