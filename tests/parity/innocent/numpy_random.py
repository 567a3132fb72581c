"""Numbers that the function draws from NumPy's global generator are eager's, and new in every call."""

import numpy as np
import torch


def noisy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + float(np.random.rand()), x * np.random.randint(1, 10)


def main() -> None:
    compiled = torch.compile(noisy)
    for _ in range(2):
        compiled(torch.ones(2))


if __name__ == "__main__":
    main()
