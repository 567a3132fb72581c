"""A GAN on points of a ring: two networks, two optimizers, a detached fake for the critic."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
generate, discriminate = torch.compile(generator), torch.compile(discriminator)
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
real_labels, fake_labels = torch.ones(32, 1), torch.zeros(32, 1)

for step in range(5):
    angles = 6.2832 * torch.rand(32)
    real = torch.stack([angles.cos(), angles.sin()], dim=1)
    fake = generate(torch.randn(32, 4))

    # The discriminator: real to one, fake to zero.
    optimizer_d.zero_grad()
    loss_real = criterion(discriminate(real), real_labels)
    loss_fake = criterion(discriminate(fake.detach()), fake_labels)
    loss_real.backward()
    loss_fake.backward()
    optimizer_d.step()

    # The generator: have its fakes taken for real.
    optimizer_g.zero_grad()
    for parameter in discriminator.parameters():
        parameter.requires_grad_(False)
    loss_g = criterion(discriminate(fake), real_labels)
    loss_g.backward()
    for parameter in discriminator.parameters():
        parameter.requires_grad_(True)
    optimizer_g.step()
    print(step, (loss_real + loss_fake).item(), loss_g.item())

generator.eval()
with torch.no_grad():
    print(generate(torch.randn(32, 4)).norm(dim=1).mean().item())
