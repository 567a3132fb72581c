"""Layer norm, softmax and logsumexp of a row are reductions, which Inductor orders in its own way."""

import torch
from torch.nn.functional import layer_norm


def normalise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return layer_norm(x, x.shape[-1:]), x.softmax(-1), x.logsumexp(-1)


def main() -> None:
    torch.compile(normalise)(torch.randn(32, 301) * 5)


if __name__ == "__main__":
    main()
