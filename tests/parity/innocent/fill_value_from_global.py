"""A fill value that changes between two calls is followed by the cumulative sum of the filled tensor.

Source: pytorch#193876.
"""

import torch

step = 1


def positions() -> torch.Tensor:
    return torch.full((4,), step, dtype=torch.int64).cumsum(0)


def main() -> None:
    global step
    compiled = torch.compile(positions)
    for value in (1, 2):
        step = value
        compiled()


if __name__ == "__main__":
    main()
