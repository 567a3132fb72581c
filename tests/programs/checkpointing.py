"""Activation checkpointing, both variants: inside a compiled model, and around compiled blocks.

Nothing is generated here, for the sake of time: what is recomputed is up to AOTAutograd.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        return x + self.net(x)


class Stack(nn.Module):
    def __init__(self, blocks, use_reentrant):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)
        return x


def train(name, forward, parameters):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = forward(x.clone().requires_grad_()).square().mean()
        loss.backward()
        optimizer.step()
        print(name, step, loss.item())


x = torch.randn(16, 8)
for use_reentrant in (False, True):
    model = Stack([Block(), Block()], use_reentrant)
    train(
        f"inside, reentrant={use_reentrant}",
        torch.compile(model, backend="aot_eager"),
        model.parameters(),
    )

    blocks = [torch.compile(Block(), backend="aot_eager") for _ in range(2)]
    model = Stack(blocks, use_reentrant)
    train(f"around, reentrant={use_reentrant}", model, model.parameters())

layers = nn.Sequential(*(torch.compile(Block(), backend="aot_eager") for _ in range(4)))
train(
    "segments",
    lambda inputs: checkpoint_sequential(layers, 2, inputs, use_reentrant=False),
    layers.parameters(),
)
