import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
torch._logging.set_logs(all=50)
x = torch.randn(3, 5, 8)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        hidden, _ = self.lstm(x.tanh())
        return self.head(hidden)


def a_loop(x):
    for scale in (1, 2, 3):
        x = (x * scale).sin()
    return x


def an_item(x):
    return x * x.max().item()


def a_shape(x):
    return x.mean() if x.shape[0] > 2 else x.sum()


drill = {}
for function in Tagger(), a_loop, an_item, a_shape:
    torch.compiler.reset()
    counter = CompileCounter()
    torch.compile(function, backend=counter)(x)
    name = getattr(function, "__name__", "tagger")
    drill[name] = {"graphs": counter.frame_count, "operations": counter.op_count}
    print(f"{name:14} {counter.frame_count} graphs, {counter.op_count} operations")
