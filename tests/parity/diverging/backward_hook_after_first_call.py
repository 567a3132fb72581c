"""A full backward hook that a module gets after its first compiled call is never called.

Source: pytorch#115750, pytorch#117265.
"""

import torch

NAMES = {"2.13": {"grad/value"}, "2.14": {"grad/value"}, "2.15": {"grad/value"}}


def main() -> None:
    torch._dynamo.reset()
    model = torch.nn.Linear(2, 2, bias=False)
    compiled = torch.compile(model)
    x = torch.ones(1, 2, requires_grad=True)
    compiled(x).sum().backward()
    model.register_full_backward_hook(lambda _module, grads, _outputs: (grads[0] * 10,))
    compiled(x).sum().backward()


if __name__ == "__main__":
    main()
