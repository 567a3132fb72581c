import copy

import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

torch.manual_seed(0)
torch._logging.set_logs(all=50)  # the warning about `.item()` is counted instead
first_model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
x, y = torch.randn(32, 8), torch.randn(32, 1)


def mean_square(model):
    return (model(x) - y).square().mean()


def with_item(model):
    loss = mean_square(model)
    assert loss.item() >= 0  # a number for Python
    return loss * 1


def with_history(model):
    loss = mean_square(model)
    history.append(loss.detach())  # the list is longer at each call
    return loss * 1


def train(name, loss_of, compile_what):
    torch.compiler.reset()
    counter = CompileCounter()
    model = copy.deepcopy(first_model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if compile_what == "model":
        model.compile(backend=counter)
    if compile_what == "loss":
        loss_of = torch.compile(loss_of, backend=counter)

    def loss_and_gradients():
        loss = loss_of(model)
        loss.backward()
        return loss.detach()

    if compile_what == "backward":
        loss_and_gradients = torch.compile(loss_and_gradients, backend=counter)
    for _ in range(10):
        optimizer.zero_grad()
        loss = loss_and_gradients()
        optimizer.step()
    graphs[name], last_loss[name] = counter.frame_count, loss.item()
    print(f"{name:18} {graphs[name]} graphs  last loss {loss.item():.6f}")


history, graphs, last_loss = [], {}, {}
train("eager", mean_square, "nothing")
train("model", mean_square, "model")
train("model_and_loss", mean_square, "loss")
train("loss_with_item", with_item, "loss")
train("loss_with_history", with_history, "loss")
train("with_backward", mean_square, "backward")
