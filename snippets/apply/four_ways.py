import copy
import pickle

import torch
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(0)
x, hooked = torch.randn(4, 8), []


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x).relu()


class Decorated(Model):
    @torch.compile(backend="eager")
    def forward(self, x):
        return super().forward(x)


def note(module, arguments, output):
    hooked.append(module)


def made(way):
    model = Decorated() if way == "decorator" else Model()
    if way == "wrapper":
        return torch.compile(model, backend="eager")
    if way == "in_place":
        model.compile(backend="eager")
    if way == "forward_replaced":
        model.forward = torch.compile(model.forward, backend="eager")
    return model


def ask(question, model):
    try:
        return "yes" if question(model) else "no"
    except Exception as error:
        return f"no: {type(error).__name__}"


def graphs(model):
    torch.compiler.reset()
    counters.clear()
    model(x)
    return counters["stats"]["unique_graphs"]


keys = [*Model().state_dict()]
questions = {
    "is_a_model": lambda m: isinstance(m, Model),
    "same_keys": lambda m: [*m.state_dict()] == keys,
    "truth": lambda m: bool(m),  # as in `if model:`
    "hook_runs": lambda m: m in hooked,
    "pickles": lambda m: pickle.loads(pickle.dumps(m)) is not None,
}
rows = {}
for way in "wrapper", "in_place", "forward_replaced", "decorator":
    model = made(way)
    model.register_forward_hook(note)
    row = {"graphs": graphs(model)}
    row.update({name: ask(question, model) for name, question in questions.items()})
    rows[way] = row | {"graphs_of_a_copy": graphs(copy.deepcopy(model))}
print(" " * 17, *(f"{way:17}" for way in rows))
for name in rows["wrapper"]:
    print(f"{name:17}", *(f"{answers[name]!s:17}" for answers in rows.values()))
