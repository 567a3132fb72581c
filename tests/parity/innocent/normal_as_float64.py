"""normal() in float64 is drawn from eager's stream, once Inductor is told to.

Source: pytorch#112449.
"""

import torch

RANDOM = True


def draw() -> torch.Tensor:
    return torch.normal(1.0, 2.0, (3, 3), dtype=torch.float64)


def main() -> None:
    torch.compile(draw)()


if __name__ == "__main__":
    main()
