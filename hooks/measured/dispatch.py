"""A dispatch mode that sees the operations on memory, whatever the tensors are made of."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class PlainMode(TorchDispatchMode):
    """Sees every operation on plain tensors below autograd, backward included.

    An operation on a tensor that is made of others is done by its class, of operations on those.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        plain = torch.Tensor.__torch_dispatch__
        if any(kind.__torch_dispatch__ is not plain for kind in types):
            return NotImplemented  # Asked again for each operation that its class does.
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of an operation."""
        raise NotImplementedError
