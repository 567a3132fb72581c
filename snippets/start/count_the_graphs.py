import torch

torch.manual_seed(0)
compiled_graphs = []


def count(graph_module, example_inputs):  # a backend that only counts
    compiled_graphs.append(graph_module)
    return graph_module.forward


def step(event, batch):
    compiled(torch.randn(batch, 8))
    graphs_after[event] = len(compiled_graphs)


graphs_after = {}
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
compiled = torch.compile(model, backend=count)
graphs_after["wrap"] = len(compiled_graphs)

step("call_1_batch_4", 4)
step("call_2_batch_4", 4)
step("second_size_5", 5)
step("third_size_6", 6)
step("batch_of_1", 1)
model.eval()
step("model_eval", 6)
with torch.no_grad():
    step("no_grad", 6)

for event, graphs in graphs_after.items():
    print(f"{event:16} {graphs}")
