import contextlib

import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
counter = CompileCounter()
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.0), nn.ReLU())
compiled = torch.compile(model, backend=counter)
x = torch.randn(4, 8)
graphs_after = {}


def call(event, context):
    with context:
        compiled(x)
    graphs_after[event] = counter.frame_count
    print(f"{event:22} {counter.frame_count} graphs")


model.eval()
call("eval", contextlib.nullcontext())
call("eval_no_grad", torch.no_grad())
call("eval_inference_mode", torch.inference_mode())
call("eval_again", contextlib.nullcontext())
model.train()
call("train", contextlib.nullcontext())
model.eval()
with torch.inference_mode():
    made_inside = torch.randn(4, 8)
x = made_inside
call("tensor_made_inside", torch.inference_mode())
