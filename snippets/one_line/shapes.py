import logging

import torch

torch.manual_seed(0)
torch._logging.set_logs(dynamo=logging.ERROR)  # mutes the limit's warning
compiled_graphs = []


def count(graph_module, example_inputs):  # a backend that only counts
    compiled_graphs.append(graph_module)
    return graph_module.forward


def graphs_for(lengths, dynamic):
    torch.compiler.reset()
    compiled_graphs.clear()
    compiled = torch.compile(torch.nn.Linear(8, 8), backend=count, dynamic=dynamic)
    for length in lengths:
        compiled(torch.randn(length, 8))
    return len(compiled_graphs)


graphs = {}
print("dynamic=   12 lengths   5, 7, 1, 9")
for dynamic in None, True, False:
    twelve = graphs_for(range(2, 14), dynamic)
    with_a_one = graphs_for([5, 7, 1, 9], dynamic)
    graphs[f"dynamic_{dynamic}"] = {"twelve": twelve, "with_a_one": with_a_one}
    print(f"{dynamic!s:10} {twelve:6} {with_a_one:12}")
recompile_limit = torch._dynamo.config.recompile_limit
