"""Every random operation draws as eager does, once Inductor is told to: and leaves the stream alike."""

import torch
from torch.nn import functional

RANDOM = True


def draw(x: torch.Tensor, query: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (
        torch.rand(5) + torch.randn(5) + torch.rand_like(x),
        torch.randint(0, 9, (5,)) + torch.randperm(5),
        torch.bernoulli(torch.full((5,), 0.5)),
        torch.multinomial(torch.ones(8), 4),
        torch.normal(torch.zeros(5), 1.0),
        torch.empty(5).uniform_() + torch.empty(5).exponential_(),
        functional.dropout(x, 0.5) + functional.alpha_dropout(x, 0.5, True),
        functional.rrelu(x, training=True),
        functional.scaled_dot_product_attention(query, query, query, dropout_p=0.3),
        functional.gumbel_softmax(x, dim=0),
    )


def main() -> None:
    torch.compile(draw)(torch.randn(5), torch.randn(1, 2, 4, 8))


if __name__ == "__main__":
    main()
