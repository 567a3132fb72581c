"""torch.empty has no values to agree about; eager's own differ from call to call.

Source: pytorch#149399.
"""

import torch


def reserve(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty(1000), x + 1


def main() -> None:
    torch.compile(reserve)(torch.randn(3))


if __name__ == "__main__":
    main()
