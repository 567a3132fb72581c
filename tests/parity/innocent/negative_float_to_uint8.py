"""C++ leaves open what a float outside 0 to 255 becomes as uint8; here both make the same of it.

Source: pytorch#131910.
"""

import torch


def to_byte(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.uint8)


def main() -> None:
    torch.compile(to_byte)(torch.tensor([-0.5, -1.0, -300.0, 7.0, 300.0]).repeat(7))


if __name__ == "__main__":
    main()
