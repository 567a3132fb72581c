"""Half a unit of bfloat16 decides which integer a chain ends at; a fused chain decides otherwise.

Integers must be equal, whichever of the two float64 agrees with.
"""

import torch

NAMES = {"2.13": {"value"}, "2.14": {"value"}, "2.15": {"value"}}


def buckets(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scaled = x * 1.1
    bucket = scaled - 0.1 * x
    return bucket.floor(), (bucket >= x).int(), bucket.long()


def main() -> None:
    torch.compile(buckets)(torch.arange(1, 257).bfloat16())


if __name__ == "__main__":
    main()
