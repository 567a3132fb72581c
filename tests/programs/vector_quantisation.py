"""VQ-VAE's codebook: moved by averages inside the forward pass, a straight-through gradient."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Codebook(nn.Module):
    def __init__(self, codes=6, width=4, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("uses", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(1)
        quantised = self.codes[index]
        if self.training:
            with torch.no_grad():
                chosen = F.one_hot(index, len(self.codes)).to(z.dtype)
                self.uses.mul_(self.decay).add_(chosen.sum(0), alpha=1 - self.decay)
                self.sums.mul_(self.decay).add_(chosen.t() @ z, alpha=1 - self.decay)
                self.codes.copy_(self.sums / self.uses.clamp(min=1e-5)[:, None])
        commitment = F.mse_loss(z, quantised.detach())
        return z + (quantised - z).detach(), commitment, index


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.codebook, self.decode = nn.Linear(8, 4), Codebook(), nn.Linear(4, 8)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        quantised, commitment, index = self.codebook(self.encode(x))
        return F.mse_loss(self.decode(quantised), x) + 0.25 * commitment, index


autoencoder = Autoencoder()
model = torch.compile(autoencoder)
optimizer = torch.optim.SGD(autoencoder.parameters(), lr=0.1)
x = torch.randn(24, 8)
for _ in range(4):
    loss, index = model(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(autoencoder.steps, loss.item(), index.tolist(), autoencoder.codebook.uses.sum().item())
