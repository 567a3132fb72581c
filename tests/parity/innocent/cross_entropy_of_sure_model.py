"""The loss of a model that is all but certain, and its gradient, are differences of near equals."""

import torch
from torch.nn.functional import cross_entropy


def loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits, target, label_smoothing=0.1)


def main() -> None:
    logits = (torch.randn(64, 50) * 10).requires_grad_()
    torch.compile(loss)(logits, logits.detach().argmax(-1)).backward()


if __name__ == "__main__":
    main()
