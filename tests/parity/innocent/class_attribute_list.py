"""A list on the class grows by one with every compiled call, as it does in eager.

Source: pytorch#169253.
"""

from typing import ClassVar

import torch


class Double(torch.nn.Module):
    batches: ClassVar[list[int]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Double.batches.append(len(x))
        return x * 2


def main() -> None:
    Double.batches.clear()
    compiled = torch.compile(Double())
    for _ in range(3):
        compiled(torch.ones(2))
    assert Double.batches == [2, 2, 2]


if __name__ == "__main__":
    main()
