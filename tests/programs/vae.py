"""A variational autoencoder: the noise of the reparametrisation is drawn in the compiled model."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
        self.mean = nn.Linear(16, latent)
        self.log_variance = nn.Linear(16, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 12)
        )

    def reparameterize(self, mean, log_variance):
        deviation = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(deviation) * deviation

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        return self.decoder(self.reparameterize(mean, log_variance)), mean, log_variance


def loss_function(logits, x, mean, log_variance):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return reconstruction + divergence


data = (torch.rand(32, 12) > 0.5).float()
vae = VAE()
model = torch.compile(vae)
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    loss = loss_function(*(outputs := model(data))[:1], data, *outputs[1:])
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item() / len(data))

vae.eval()
with torch.no_grad():
    print("sample", vae.decoder(torch.randn(1, 2)).sigmoid().tolist())
