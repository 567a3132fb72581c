import torch

weight = torch.linspace(-1, 1, 1000, requires_grad=True)
loss = 1e-6 * (weight**2).sum()
(gradient,) = torch.autograd.grad(loss, weight)
wrong = -gradient

torch.testing.assert_close(wrong, gradient)
print("assert_close: the same")

ulp = torch.finfo(gradient.dtype).eps * 2.0 ** (torch.frexp(gradient).exponent - 1)
apart_ulp = ((wrong - gradient).abs() / ulp).min().item()
print(f"every element is off by {apart_ulp:,.0f} ULP or more")
