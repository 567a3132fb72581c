"""Three ways to read a sequence: nn.LSTM, nn.GRU, and a cell written by hand.

Dynamo does not look into torch's own recurrent layers: the graph breaks there, and a bare layer
runs as it would without torch.compile.
"""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class LSTMTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.tag = nn.Linear(8, 4)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        return self.tag(states).log_softmax(-1)


class GRUClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 8, num_layers=2)
        self.head = nn.Linear(8, 2)

    def forward(self, series, hidden):
        _, hidden = self.gru(series, hidden)
        return self.head(torch.relu(hidden[-1])), hidden


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden_size = 8
        self.update = nn.Linear(3 + 8, 8)
        self.read = nn.Linear(8, 2)

    def forward(self, series):
        hidden = series.new_zeros(series.shape[1], self.hidden_size)
        for x in series:
            hidden = torch.tanh(self.update(torch.cat([x, hidden], dim=-1)))
        return self.read(hidden)


words, tags = torch.randint(12, (4, 5)), torch.randint(4, (4, 5))
series, classes = torch.randn(5, 4, 3), torch.randint(2, (4,))

tagger = torch.compile(LSTMTagger())
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.5)
for step in range(3):
    optimizer.zero_grad()
    loss = F.nll_loss(tagger(words).flatten(0, 1), tags.flatten())
    loss.backward()
    optimizer.step()
    print("LSTM", step, loss.item())

classifier = torch.compile(GRUClassifier())
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.5)
hidden = torch.zeros(2, 4, 8)
for step in range(3):  # truncated backpropagation through time
    optimizer.zero_grad()
    logits, hidden = classifier(series, hidden.detach())
    loss = F.cross_entropy(logits, classes)
    loss.backward()
    optimizer.step()
    print("GRU", step, loss.item())

cell = torch.compile(Cell())
optimizer = torch.optim.RMSprop(cell.parameters(), lr=1e-2)
for step in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(cell(series), classes)
    loss.backward()
    nn.utils.clip_grad_value_(cell.parameters(), 0.1)
    optimizer.step()
    print("cell", step, loss.item())

layer = torch.compile(nn.LSTM(3, 8))
output, _ = layer(series)
print("bare layer", output.sum().item())
