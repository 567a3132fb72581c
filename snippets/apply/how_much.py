import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
x, target = torch.randn(4, 8), torch.randn(4, 8)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return x + self.norm(self.linear(x).relu())


def network():
    return nn.Sequential(*(Block() for _ in range(6)))


def report(name, counter, call):
    call()
    captured[name] = {"graphs": counter.frame_count, "operations": counter.op_count}
    print(f"{name:16} {counter.frame_count} graphs, {counter.op_count} operations")


captured = {}
counter = CompileCounter()
model = torch.compile(network(), backend=counter)
report("whole_model", counter, lambda: model(x))

torch.compiler.reset()
counter = CompileCounter()
blocks = network()
for block in blocks:
    block.compile(backend=counter)
report("each_block", counter, lambda: blocks(x))

torch.compiler.reset()
counter, network_and_loss = CompileCounter(), network()
step = torch.compile(lambda x, y: (network_and_loss(x) - y).square().mean(), backend=counter)
report("model_and_loss", counter, lambda: step(x, target))
