import math

import torch

torch.manual_seed(0)
graph = []


def keep(graph_module, example_inputs):
    graph.extend(n for n in graph_module.graph.nodes if n.op.startswith("call"))
    return graph_module.forward


class Settings:
    scale = math.sqrt(16)


def f(x, names):
    x.exp()  # nothing uses the result
    outputs = {}
    for index, name in enumerate(names):
        if len(name) > 2 and isinstance(x, torch.Tensor):
            outputs[name] = x * Settings.scale + index
    label = f"{len(outputs)} outputs of {x.shape[0]} numbers"
    return outputs, label


outputs, label = torch.compile(f, backend=keep)(torch.randn(4), ["ab", "abc", "abcd"])
for node in graph:
    target = node.target if isinstance(node.target, str) else node.target.__name__
    print(f"{node} = {target}({', '.join(map(str, node.args))})")
operations = len(graph)
print(label)
