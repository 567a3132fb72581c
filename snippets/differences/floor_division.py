import torch


def bins(value, width):
    return value // width


value, width = torch.tensor([0.25, 0.5, 1.0, 2.0]), torch.tensor(0.1)
eager = bins(value, width).tolist()
compiled = torch.compile(bins)(value, width).tolist()
python = [v // 0.1 for v in value.tolist()]
print("value   ", value.tolist())
print("Python  ", python)
print("eager   ", eager)
print("compiled", compiled)
