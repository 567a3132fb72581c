import copy

import torch
import torch.nn as nn
from torch._dynamo.utils import counters

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
wrapped = torch.compile(model)
in_place = copy.deepcopy(model)
in_place.compile()  # the other way to compile a module
x = torch.randn(4, 8)


def can_be_indexed(module):
    try:
        return isinstance(module[0], nn.Linear)
    except TypeError:
        return False


def both(ask):
    return ["yes" if ask(compiled) else "no" for compiled in (wrapped, in_place)]


questions = {
    "same_output": lambda m: torch.equal(m(x), model(x)),
    "same_type": lambda m: isinstance(m, nn.Sequential),
    "same_checkpoint_keys": lambda m: [*m.state_dict()] == [*model.state_dict()],
    "can_be_indexed": can_be_indexed,
}
answers = {question: both(ask) for question, ask in questions.items()}
print("                     torch.compile(m)  m.compile()")
for question, (of_wrapped, of_in_place) in answers.items():
    print(f"{question:22} {of_wrapped:16} {of_in_place}")
first_key = next(iter(wrapped.state_dict()))


def chatty(x):
    y = x.sin()
    print("print still prints: a tensor of shape", tuple(y.shape))
    return y.cos()


before = counters["stats"]["unique_graphs"]
torch.compile(chatty, backend="eager")(x)
graphs_with_print = counters["stats"]["unique_graphs"] - before
