import torch


def first_step(compile):
    weight = torch.nn.Parameter(torch.zeros(3))
    adam = torch.optim.Adam([weight], lr=0.1)
    weight.grad = torch.tensor([1.0, -2.0, 0.5])
    step = torch.compile(adam.step) if compile else adam.step
    step()
    return weight.detach().double()


eager, compiled = first_step(compile=False), first_step(compile=True)
relative = ((compiled - eager) / eager).abs().max().item()
one_part_in = round(1 / relative)
beta = torch.tensor(0.999)
print(f"eager    {eager[0].item():.9f}")
print(f"compiled {compiled[0].item():.9f}")
print(f"1 - 0.999 in float64 {1 - 0.999:.9f}, in float32 {(1 - beta).item():.9f}")
