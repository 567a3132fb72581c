"""Fine-tuning: a frozen backbone from a checkpoint, a new head, later two groups of parameters."""

import io

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU()
        )
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


file = io.BytesIO()
torch.save(Classifier(10).state_dict(), file)
file.seek(0)
pretrained = {k: v for k, v in torch.load(file).items() if not k.startswith("head")}

model = Classifier(3)
print(model.load_state_dict(pretrained, strict=False))
model.backbone.requires_grad_(False)
compiled = torch.compile(model)
x, y = torch.randn(16, 8), torch.randint(3, (16,))


def train(name, optimizer, steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
        frozen = sum(p.grad is None for p in model.parameters())
        print(name, step, loss.item(), "without a gradient:", frozen)


model.backbone.eval()
train("head", torch.optim.SGD(model.head.parameters(), lr=0.5), 3)

model.train()
model.backbone[3].requires_grad_(True)
optimizer = torch.optim.SGD(
    [
        {"params": model.head.parameters()},
        {"params": model.backbone[3].parameters(), "lr": 0.01, "weight_decay": 0.1},
    ],
    lr=0.1,
    momentum=0.9,
)
train("last layer", optimizer, 3)
