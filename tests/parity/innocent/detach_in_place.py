"""detach_ of an intermediate is seen by what the function asks about it afterwards.

Source: pytorch#176854.
"""

import torch


def cut(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    part = x * 2
    part.detach_()
    return part + x, part.requires_grad


def main() -> None:
    torch.compile(cut)(torch.randn(3, requires_grad=True))


if __name__ == "__main__":
    main()
