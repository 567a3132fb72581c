"""float32 to half and back is a rounding in eager and nothing at all in a fused kernel.

By the rule for floats this is no difference: compiled is the one that float64 agrees with.

Source: pytorch#185337.
"""

import torch

NAMES = {"2.13": set(), "2.14": set(), "2.15": set()}


def rounded(x: torch.Tensor) -> torch.Tensor:
    return x.half().float()


def main() -> None:
    torch.compile(rounded)(torch.arange(1.0, 33.0) / 7)


if __name__ == "__main__":
    main()
