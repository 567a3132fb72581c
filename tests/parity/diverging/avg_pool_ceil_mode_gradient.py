"""The last, partial window of an average pool with ceil_mode sends back a wrong gradient.

Source: pytorch#198119.
"""

import torch
from torch.nn.functional import avg_pool2d

NAMES = {"2.13": {"grad/value"}, "2.14": {"grad/value"}, "2.15": {"grad/value"}}


def pool(x: torch.Tensor) -> torch.Tensor:
    return avg_pool2d(x, kernel_size=3, stride=2, ceil_mode=True)


def main() -> None:
    image = torch.randn(1, 1, 6, 6, requires_grad=True)
    torch.compile(pool)(image).sum().backward()


if __name__ == "__main__":
    main()
