import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)
x = torch.randn(100)


def whole(x):
    return (x.sin() + 1).cos()


def with_a_print(x):
    y = x.sin() + 1
    print(end="")
    return y.cos()


def with_an_if(x):
    y = x.sin() + 1
    return y.cos() if y.sum() > 0 else y.tan()


def look_at(function):
    torch.compiler.reset()
    counters.clear()
    torch.compile(function, backend="eager")(x)
    stats, breaks = counters["stats"], counters["graph_break"]
    seen = {"graphs": stats["unique_graphs"], "operations": stats["calls_captured"]}
    seen["breaks"] = sum(breaks.values())
    torch.compiler.reset()
    try:
        torch.compile(function, backend="eager", fullgraph=True)(x)
        seen["fullgraph"] = "passes"
    except torch._dynamo.exc.TorchDynamoException as error:
        seen["fullgraph"] = f"raises {type(error).__name__}"
    return seen


results = {f.__name__: look_at(f) for f in (whole, with_a_print, with_an_if)}
print("              graphs  operations  breaks  fullgraph=True")
for name, seen in results.items():
    numbers = "{graphs:6}{operations:12}{breaks:8}  {fullgraph}".format(**seen)
    print(f"{name:14}{numbers}")
