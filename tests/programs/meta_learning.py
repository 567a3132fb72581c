"""Functional training: per-sample gradients, and an inner step of MAML, with torch.func."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def loss_of(parameters, x, y):
    return F.mse_loss(functional_call(model, parameters, (x,)), y)


@torch.compile
def per_sample(parameters, x, y):
    one = grad(lambda p, a, b: loss_of(p, a[None], b[None]))
    return vmap(one, in_dims=(None, 0, 0))(parameters, x, y)


@torch.compile
def after_inner_step(parameters, support, query, lr=0.1):
    slopes = grad(loss_of)(parameters, *support)
    adapted = {name: value - lr * slopes[name] for name, value in parameters.items()}
    return loss_of(adapted, *query)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    tasks = [torch.randn(6, 3) for _ in range(2)]
    support, query = [(x, x.sum(1, keepdim=True).sin()) for x in tasks]
    parameters = dict(model.named_parameters())
    frozen = {name: value.detach() for name, value in parameters.items()}
    norms = sum(g.flatten(1).square().sum(1) for g in per_sample(frozen, *support).values())
    loss = after_inner_step(parameters, support, query)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), "norms", norms.sqrt().tolist())
