import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
counter = CompileCounter()
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.0), nn.Linear(8, 1))
model.compile(backend=counter)
graphs_after = {}


def epoch(sizes):
    for size in sizes:
        model(torch.randn(size, 8)).sum().backward()


def note(event):
    graphs_after[event] = counter.frame_count
    print(f"{event:20} {counter.frame_count} graphs")


model.train()
epoch([64, 64])
note("two_batches_of_64")
epoch([40])
note("last_batch_of_40")
model.eval()
with torch.no_grad():
    model(torch.randn(64, 8))
note("validation")
model.train()
epoch([64, 64, 40])
note("second_epoch")
model[2].weight.requires_grad_(False)
epoch([64])
note("a_weight_frozen")
