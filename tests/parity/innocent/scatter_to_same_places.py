"""Which of many values for one place wins is undefined, in a scatter as in an assignment."""

import torch


def write(
    x: torch.Tensor, index: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    assigned = x.clone()
    assigned[index] = values
    return assigned, x.scatter(0, index, values)


def main() -> None:
    index = torch.randint(50, (100_000,))
    torch.compile(write)(torch.zeros(50), index, torch.arange(100_000.0))


if __name__ == "__main__":
    main()
