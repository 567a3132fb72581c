"""Two equal expressions are computed once, and still returned as two tensors.

Source: pytorch#114338.
"""

import torch


def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + 1, x + 1


def main() -> None:
    first, second = torch.compile(twice)(torch.zeros(2))
    first.add_(10)
    second.tolist()


if __name__ == "__main__":
    main()
