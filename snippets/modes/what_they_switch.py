import torch
from torch._inductor import list_mode_options

torch.manual_seed(0)
modes = list(list_mode_options())
switches, listed = {}, []
for mode in modes:
    options = list_mode_options(mode)
    switches[mode.replace("-", "_")] = len(options)
    if mode in torch.compile.__doc__:
        listed.append(mode)
    print(f"{mode}: {len(options)} options")
    for name, value in options.items():
        print(f"    {name} = {value}")
not_in_the_docstring = ", ".join(mode for mode in modes if mode not in listed)
print("not in the docstring of torch.compile:", not_in_the_docstring)

try:
    torch.compile(torch.sin, mode="max-autotun")
except RuntimeError as error:
    mistyped = str(error)
    print(mistyped)
