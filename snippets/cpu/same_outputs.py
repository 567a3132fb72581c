import copy

import torch
from torch import nn

torch.manual_seed(0)
lesson = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
x = torch.randn(32, 64)
cases = {
    "the_lesson": (lesson, x),
    "softmax": (lambda t: t.softmax(-1), x),
    "sum_of_a_million": (torch.sum, torch.randn(1_000_000)),
    "bfloat16_chain": (lambda t: (t * 1.1 + 0.3) * t - t * 0.7, x.bfloat16()),
}


def in_float64(function, argument):
    function = copy.deepcopy(function)
    if isinstance(function, nn.Module):
        function.double()
    return function(argument.double())


def compare(a, b):
    return "equal" if torch.equal(a, b) else "not equal"


def error(a, truth):
    return f"{(a - truth).abs().max():.1e}"


results = {}
print("                  1st, 2nd call   eager, compiled   error of each to float64")
with torch.no_grad():
    for name, (function, argument) in cases.items():
        compiled, truth = torch.compile(function), in_float64(function, argument)
        first, second, eager = compiled(argument), compiled(argument), function(argument)
        row = results[name] = {
            "repeats": compare(first, second),
            "equals_eager": compare(eager, first),
            "eager_error": error(eager, truth),
            "compiled_error": error(first, truth),
        }
        print(f"{name:17} {row['repeats']:15} {row['equals_eager']:17}", end=" ")
        print(row["eager_error"], row["compiled_error"])
