import torch


def first_step(compile, **options):
    weight = torch.nn.Parameter(torch.zeros(3, dtype=torch.float32))
    adam = torch.optim.Adam([weight], lr=0.1, **options)
    weight.grad = torch.tensor([1.0, -2.0, 0.5])
    step = torch.compile(adam.step) if compile else adam.step
    step()
    return weight.detach().double()


relative = {}
for name, options in (("default", {}), ("fused", {"fused": True})):
    eager = first_step(compile=False, **options)
    compiled = first_step(compile=True, **options)
    relative[name] = ((compiled - eager) / eager).abs().max().item()
    print(f"{name:8} eager {eager[0].item():.9f}, compiled {compiled[0].item():.9f}")
