"""Which object an attribute holds decides between two branches; compiled code takes the old one.

Source: pytorch#196173.
"""

import torch

NAMES = {
    "2.13": {"state/value", "value"},
    "2.14": {"state/value", "value"},
    "2.15": {"state/value", "value"},
}


class Switch:
    def __init__(self) -> None:
        self.position: object = None
        self.times_up = 0


UP, DOWN = object(), object()
switch = Switch()


def step(x: torch.Tensor) -> torch.Tensor:
    if switch.position is UP:
        switch.times_up += 1
        return x + 1
    switch.position = UP
    return x - 1


def main() -> None:
    torch._dynamo.reset()
    switch.times_up = 0
    compiled = torch.compile(step)
    for position in (UP, DOWN, UP):
        switch.position = position
        compiled(torch.zeros(2))


if __name__ == "__main__":
    main()
