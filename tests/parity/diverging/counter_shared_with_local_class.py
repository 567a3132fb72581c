"""A method adds to a dict that it shares with its maker; when compiled code calls it, nothing is added.

Source: pytorch#197896.
"""

from collections.abc import Callable

import torch

NAMES = {"2.13": {"state/value"}, "2.14": {"state/value"}, "2.15": {"state/value"}}

tally = {"opened": 0}


def make_step(counts: dict[str, int]) -> Callable[[torch.Tensor], torch.Tensor]:
    class Gate:
        def open(self) -> None:
            counts["opened"] += 1

    def step(x: torch.Tensor) -> torch.Tensor:
        Gate().open()
        return x.cos()

    return step


step = make_step(tally)


def main() -> None:
    tally["opened"] = 0
    compiled = torch.compile(step)
    for _ in range(2):
        compiled(torch.ones(3))


if __name__ == "__main__":
    main()
