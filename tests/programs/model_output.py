"""Models that return their results by name: an ordered dict with attributes, and a dataclass."""

import dataclasses
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ModelOutput(OrderedDict):
    """A dict whose entries are attributes, too, and which can be indexed like a tuple."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self):
        return tuple(super(ModelOutput, self).__getitem__(key) for key in self.keys())


@dataclasses.dataclass
class EncoderOutput:
    last_hidden_state: torch.Tensor
    hidden_states: tuple[torch.Tensor, ...] | None = None


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(20, 8, padding_idx=0)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, input_ids, output_hidden_states=False):
        hidden = self.embeddings(input_ids)
        states = (hidden,)
        for layer in self.layers:
            hidden = F.gelu(layer(hidden))
            states += (hidden,)
        return EncoderOutput(hidden, states if output_hidden_states else None)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.score = nn.Linear(8, 3)

    def forward(self, input_ids, attention_mask=None, labels=None, **options):
        encoded = self.encoder(input_ids, **options)
        mask = attention_mask[..., None].float()
        pooled = (encoded.last_hidden_state * mask).sum(1) / mask.sum(1).clamp(min=1)
        output = ModelOutput(logits=self.score(pooled))
        if labels is not None:
            output["loss"] = F.cross_entropy(output.logits, labels, label_smoothing=0.1)
        if encoded.hidden_states is not None:
            output["hidden_states"] = encoded.hidden_states
        return output


model = torch.compile(Classifier())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
input_ids = torch.randint(1, 20, (8, 6))
input_ids[:, 4:] = 0
batch = {"input_ids": input_ids, "attention_mask": (input_ids != 0).long()}
labels = torch.randint(3, (8,))
for step in range(3):
    outputs = model(**batch, labels=labels)
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", outputs["loss"].item(), list(outputs))

model.eval()
with torch.no_grad():
    outputs = model(**batch, output_hidden_states=True)
    print(list(outputs), len(outputs.hidden_states), outputs[0].sum().item())
    encoded = torch.compile(model.encoder)(input_ids)
    print(type(encoded).__name__, encoded.last_hidden_state.sum().item(), encoded.hidden_states)
