import torch
import torch._inductor.config
from torch import nn
from torch._inductor.utils import run_and_get_code

torch.manual_seed(0)
x = torch.randn(16, 64)
frozen = {}


def is_frozen(name, setting=False, **arguments):
    """Whether the generated program has the weights inside, not as inputs."""
    torch.compiler.reset()
    model = nn.Linear(64, 64).eval()
    compiled = torch.compile(model, **arguments)
    with torch.no_grad(), torch._inductor.config.patch(freezing=setting):
        _, (source,) = run_and_get_code(compiled, x)
    frozen[name] = "yes" if "_frozen_param" in source else "no"
    print(f"{name:9} frozen: {frozen[name]}")
    return model, compiled


is_frozen("default")
is_frozen("option", options={"freezing": True})
model, compiled = is_frozen("setting", setting=True)
with torch.no_grad():
    model.weight.zero_()
    model.bias.zero_()
    stale = "yes" if compiled(x).abs().max() > 0 else "no"
print("weights set to zero; result is stale:", stale)
