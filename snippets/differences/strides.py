import torch


def bins(value, width):
    return torch.floor_divide(value, width)


value = torch.arange(6.0).reshape(3, 2).t()  # 2 rows, 3 columns, stored column by column
width = torch.ones(2, 3)
eager, compiled = bins(value, width), torch.compile(bins)(value, width)
equal = torch.equal(eager, compiled)
print("equal:", equal)
for name, result in (("eager", eager), ("compiled", compiled)):
    in_memory = result.as_strided((6,), (1,)).tolist()
    print(f"{name:9} strides {result.stride()}, in memory {in_memory}")
eager_strides, compiled_strides = str(eager.stride()), str(compiled.stride())
