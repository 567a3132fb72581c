"""The smooth L1 gradient of a NaN is NaN in eager and 0 when compiled."""

import torch
from torch.nn.functional import smooth_l1_loss

NAMES = {"2.13": {"grad/nan"}, "2.14": {"grad/nan"}, "2.15": {"grad/nan"}}


def losses(x: torch.Tensor) -> torch.Tensor:
    return smooth_l1_loss(x, torch.zeros_like(x), reduction="none")


def main() -> None:
    x = torch.tensor([0.25, float("nan"), -4.0], requires_grad=True)
    torch.compile(losses)(x).sum().backward()


if __name__ == "__main__":
    main()
