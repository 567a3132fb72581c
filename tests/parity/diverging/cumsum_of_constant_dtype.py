"""The cumulative sum of a constant is rewritten as a range, which forgets the dtype asked for.

Source: pytorch#189518.
"""

import torch

NAMES = {"2.13": {"dtype"}, "2.14": set(), "2.15": set()}


def positions() -> torch.Tensor:
    mask = torch.ones(2, 4, dtype=torch.bool)
    return mask.cumsum(dim=1, dtype=torch.float16)


def main() -> None:
    torch.compile(positions)()


if __name__ == "__main__":
    main()
