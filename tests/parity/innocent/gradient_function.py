"""Compiled results have another class of grad_fn, which no value depends on."""

import torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).sin()


def main() -> None:
    y = torch.compile(wave)(torch.randn(8, requires_grad=True))
    y.sum().backward()


if __name__ == "__main__":
    main()
