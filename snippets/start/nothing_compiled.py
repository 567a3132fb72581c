import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)


def graphs():
    return counters["stats"]["unique_graphs"]


def outcome(function, x):
    try:
        function(x)
    except torch._dynamo.exc.Unsupported as error:
        return f"raises {type(error).__name__}"
    return "runs in eager, no message"


x = torch.randn(3, 5, 8)

linear = torch.nn.Linear(8, 8)
torch.compile(linear, backend="eager")  # the result is thrown away
linear(x)
graphs_discarded = graphs()
print("result of torch.compile not kept:", graphs_discarded, "graphs")

lstm = torch.compile(torch.nn.LSTM(8, 8), backend="eager")
lstm(x)
graphs_lstm = graphs()
print("nn.LSTM, wrapped and called:     ", graphs_lstm, "graphs")

strict = torch.compile(torch.nn.LSTM(8, 8), backend="eager", fullgraph=True)
strict_here = outcome(strict, x)
torch.compiler.reset()  # forget what was decided about nn.LSTM above
strict_after_reset = outcome(strict, x)
print("nn.LSTM with fullgraph=True:     ", strict_here)
print("the same, after a reset:         ", strict_after_reset)
