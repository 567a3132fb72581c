"""Attention in bfloat16, forward and backward, rounds at other places when part of it is fused."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mixed = scaled_dot_product_attention(q * 1.5, k + 0.1, v, is_causal=True)
    return mixed.tanh() * q


def main() -> None:
    q, k, v = (torch.randn(2, 2, 32, 16).bfloat16().requires_grad_() for _ in range(3))
    torch.compile(attend)(q, k, v).sum().backward()


if __name__ == "__main__":
    main()
