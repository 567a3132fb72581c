"""An index out of range is caught by the function in eager; compiled, it reaches the caller."""

import contextlib

import torch

NAMES = {
    "2.13": {"exception-only-in-compiled"},
    "2.14": {"exception-only-in-compiled"},
    "2.15": {"exception-only-in-compiled"},
}


def pick(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    try:
        return x[index] * 2
    except IndexError:
        return -torch.ones_like(x)


def main() -> None:
    compiled = torch.compile(pick)
    with contextlib.suppress(RuntimeError):
        compiled(torch.ones(3), torch.tensor([1, 5]))


if __name__ == "__main__":
    main()
