"""NaN is unequal to itself; a result that has it where eager has it is equal."""

import torch


def undefined(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x / x, x.log(), torch.full_like(x, float("nan"))


def main() -> None:
    torch.compile(undefined)(torch.tensor([-2.0, 0.0, 3.0]))


if __name__ == "__main__":
    main()
