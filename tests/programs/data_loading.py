"""A data set of its own, with augmentation, a collate function and batches of several lengths."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
random.seed(0)


class Sentences(Dataset):
    def __init__(self, count):
        self.items = [torch.randint(1, 15, (random.randint(2, 5),)) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        words = self.items[index]
        if random.random() < 0.5:
            words = words.flip(0)
        return {"words": words, "label": int(words.sum()) % 2}


def collate(items):
    return {
        "words": pad_sequence([item["words"] for item in items], batch_first=True),
        "length": torch.tensor([len(item["words"]) for item in items]),
        "label": torch.tensor([item["label"] for item in items]),
    }


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(15, 8, padding_idx=0)
        self.head = nn.Linear(8, 2)

    def forward(self, batch):
        summed = self.embedding(batch["words"]).sum(1)
        return F.cross_entropy(self.head(summed / batch["length"][:, None]), batch["label"])


loader = DataLoader(Sentences(24), batch_size=6, shuffle=True, num_workers=0, collate_fn=collate)
model = torch.compile(BagOfWords(), dynamic=True)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch)
        loss.backward()
        optimizer.step()
        print(epoch, tuple(batch["words"].shape), loss.item())
