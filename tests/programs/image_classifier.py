"""A small convolutional classifier: batch norm, SGD with momentum, a schedule, an evaluation loop."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(8, 3)

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


labels = torch.arange(96) % 3
images = 0.1 * torch.randn(96, 1, 8, 8) + labels.view(-1, 1, 1, 1)
train_loader = DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=16, shuffle=True)
test_loader = DataLoader(TensorDataset(images[64:], labels[64:]), batch_size=16)

model = torch.compile(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

for epoch in range(2):
    model.train()
    running_loss = 0.0
    for batch, target in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    scheduler.step()

    model.eval()
    correct, test_loss = 0, 0.0
    with torch.no_grad():
        for batch, target in test_loader:
            logits = model(batch)
            test_loss += F.cross_entropy(logits, target).item()
            correct += (logits.argmax(1) == target).sum().item()
    print(f"epoch {epoch}: train {running_loss!r}, test {test_loss!r}, correct {correct}")
    print("learning rate", scheduler.get_last_lr())
print("running mean", model.features[1].running_mean.tolist())
