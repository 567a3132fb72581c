"""InfoNCE as in CLIP: two encoders, a matrix of similarities, a temperature that is learned."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 6))
        self.text = nn.EmbeddingBag(30, 6, mode="mean")
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, images, words):
        image = F.normalize(self.image(images), dim=-1)
        text = F.normalize(self.text(words), dim=-1)
        similarity = self.logit_scale.exp() * image @ text.t()
        return similarity, similarity.t()


@torch.compile
def info_nce(per_image, per_text):
    own = torch.arange(per_image.shape[0])
    return (F.cross_entropy(per_image, own) + F.cross_entropy(per_text, own)) / 2


model = torch.compile(Pairs())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
images, words = torch.randn(8, 12), torch.randint(30, (8, 5))
for step in range(4):
    loss = info_nce(*model(images, words))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
    print("step", step, "loss", loss.item(), "scale", model.logit_scale.exp().item())
