import copy

import torch

torch.manual_seed(0)
lesson = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).eval()
x = torch.randn(32, 64)
cases = {
    "the_lesson": (lesson, x),
    "softmax": (lambda t: t.softmax(-1), x),
    "sum_of_a_million": (torch.sum, torch.randn(1_000_000)),
    "bfloat16_chain": (lambda t: (t * 1.1 + 0.3) * t - t * 0.7, x.bfloat16()),
}


def in_float64(function, argument):
    function = copy.deepcopy(function)
    if isinstance(function, torch.nn.Module):
        function.double()
    return function(argument.double())


results = {}
print("torch.equal:     1st, 2nd call  eager, compiled   error against float64: eager, compiled")
with torch.no_grad():
    for name, (function, argument) in cases.items():
        compiled = torch.compile(function)
        first, second, eager = compiled(argument), compiled(argument), function(argument)
        repeats, equals_eager = torch.equal(first, second), torch.equal(eager, first)
        truth = in_float64(function, argument)
        eager_error, compiled_error = (f"{(y - truth).abs().max():.1e}" for y in (eager, first))
        results[name] = {
            "repeats": repeats, "equals_eager": equals_eager,
            "eager_error": eager_error, "compiled_error": compiled_error,
        }
        print(f"{name:16} {repeats!s:14} {equals_eager!s:38} {eager_error} {compiled_error}")
