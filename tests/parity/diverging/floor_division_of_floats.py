"""1.0 // 0.1 is 9 for eager, as for Python; compiled, it is the floor of a quotient rounded to 10.

On 2.13 an infinite dividend differs too: eager says NaN, compiled says infinite.

Source: pytorch#197895.
"""

import torch

NAMES = {"2.13": {"nan", "value"}, "2.14": {"value"}, "2.15": {"value"}}


def quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x // y


def main() -> None:
    compiled = torch.compile(quotient)
    compiled(torch.tensor([1.0, 2.5, 0.3]).repeat(7), torch.full((21,), 0.1))
    compiled(torch.full((21,), float("inf")), torch.full((21,), 2.0))


if __name__ == "__main__":
    main()
