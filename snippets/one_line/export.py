import warnings

import torch

warnings.simplefilter("ignore")  # TorchScript is deprecated, and the tracer warns
torch.manual_seed(0)


class Clip(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # a branch on the data
            return x.clamp(max=1)
        return -x


def answers_right(function):
    return all(torch.equal(function(x), model(x)) for x in (torch.ones(4), -torch.ones(4)))


def outcome(make):
    torch.compiler.reset()
    try:
        return "right" if answers_right(make()) else "WRONG for the other branch"
    except Exception as error:
        return f"refuses: {type(error).__name__}"


model, x = Clip(), torch.ones(4)
outcomes = {
    "compile": outcome(lambda: torch.compile(model, backend="eager")),
    "compile_fullgraph": outcome(lambda: torch.compile(model, backend="eager", fullgraph=True)),
    "export": outcome(lambda: torch.export.export(model, (x,)).module()),
    "jit_trace": outcome(lambda: torch.jit.trace(model, x)),
    "jit_script": outcome(lambda: torch.jit.script(model)),
}
for name, result in outcomes.items():
    print(f"{name:18} {result}")
