"""What a module returned as a product of its buffer with one changes when the buffer does.

Source: pytorch#197893.
"""

import torch

NAMES = {"2.13": set(), "2.14": {"aliasing"}, "2.15": {"aliasing"}}


class Average(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decay = 1.0
        self.register_buffer("mean", torch.zeros(2))

    def forward(self) -> torch.Tensor:
        return self.mean * self.decay


def main() -> None:
    average = Average()
    before = torch.compile(average)()
    average.mean += 1
    before.tolist()


if __name__ == "__main__":
    main()
