"""A denoising diffusion model of points: the loss draws times and noise, the sampler draws noise."""

import math

import torch
from torch import nn

torch.manual_seed(0)
STEPS = 8


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        betas = torch.linspace(1e-3, 0.2, STEPS)
        self.register_buffer("betas", betas)
        self.register_buffer("alpha_bars", (1 - betas).cumprod(0))
        self.net = nn.Sequential(nn.Linear(2 + 8, 32), nn.SiLU(), nn.Linear(32, 2))

    def embed(self, t):
        frequencies = torch.exp(-math.log(100.0) * torch.arange(4) / 4)
        angles = t[:, None] * frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    def forward(self, x, t):
        return self.net(torch.cat([x, self.embed(t)], dim=-1))


model = Denoiser()


@torch.compile
def training_loss(x0):
    t = torch.randint(STEPS, (x0.shape[0],))
    noise = torch.randn_like(x0)
    kept = model.alpha_bars[t][:, None]
    noisy = kept.sqrt() * x0 + (1 - kept).sqrt() * noise
    return (model(noisy, t) - noise).square().mean()


@torch.compile
def denoise(x, t):
    beta, kept = model.betas[t][:, None], model.alpha_bars[t][:, None]
    mean = (x - beta / (1 - kept).sqrt() * model(x, t)) / (1 - beta).sqrt()
    return mean + torch.where(t[:, None] > 0, beta.sqrt() * torch.randn_like(x), 0.0)


optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
angles = 6.2832 * torch.rand(64)
points = torch.stack([angles.cos(), angles.sin()], dim=1)
for step in range(4):
    loss = training_loss(points)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())

model.eval()
x = torch.randn(16, 2)
with torch.no_grad():
    for step in reversed(range(STEPS)):
        x = denoise(x, torch.full((16,), step))
print("sampled", x.mean(0).tolist(), x.std(0).tolist())
