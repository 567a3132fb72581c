"""No element is reached with the stride of a dimension of size one, whatever its number.

Source: pytorch#116433, pytorch#197815.
"""

import torch


def like(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones_like(x), x + 1


def main() -> None:
    torch.compile(like)(torch.randn(1, 4).t())


if __name__ == "__main__":
    main()
