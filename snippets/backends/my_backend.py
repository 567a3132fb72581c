from collections import Counter

import torch

torch.manual_seed(0)
histogram = Counter()


def my_backend(graph_module, example_inputs):
    """Counts the operations of each graph, and runs the graph as it is."""
    for node in graph_module.graph.nodes:
        if node.op in ("call_function", "call_method"):
            histogram[getattr(node.target, "__name__", node.target)] += 1
    return graph_module.forward


model = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
compiled = torch.compile(model, backend=my_backend, fullgraph=True)
compiled(torch.randn(2, 10, 32))
operations, kinds = histogram.total(), len(histogram)
for name, times in histogram.most_common():
    print(f"{times:3} {name}")
