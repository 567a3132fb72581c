import torch
from torch._dynamo.utils import counters

torch.manual_seed(0)


def graphs():
    return counters["stats"]["unique_graphs"]


def refuses(function, x):
    try:
        function(x)
    except torch._dynamo.exc.Unsupported:
        return True
    return False


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
refuses_at_once = refuses(strict, x)
torch.compiler.reset()  # forget what was decided about LSTM above
refuses_after_reset = refuses(strict, x)
print("fullgraph=True refuses LSTM:     ", refuses_at_once, "| after torch.compiler.reset():", refuses_after_reset)
