"""Gradients of one word are added up in the order of its places, those of the padding not at all."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Embedding(20, 8, padding_idx=0), nn.Linear(8, 3))
    words = torch.randint(20, (16, 40))
    torch.compile(model)(words).square().mean().backward()


if __name__ == "__main__":
    main()
