"""The contents of everything that a call can reach, at one moment, to be compared and put back."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from measured import holders
from measured.reach import Reach


@dataclasses.dataclass
class _TensorState:
    tensor: torch.Tensor
    alias: torch.Tensor
    """Shares storage, sizes and strides with the tensor as it was."""
    version: int
    grad_fn: Any
    grad: torch.Tensor | None
    requires_grad: bool


class Snapshot:
    """What a `Reach` held, and the random streams, at one moment.

    Storages that hold what an earlier snapshot saved share its copy: a call that writes little
    costs little memory.
    """

    def __init__(self, reached: Reach, earlier: Snapshot | None = None) -> None:
        self.reached = reached
        self._storages: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self._tensors: dict[Any, _TensorState] = {}
        self._held = {
            key: (path, thing, holder, holder.save(thing))
            for key, (path, thing, holder) in reached.holders.items()
        }
        self.streams = holders.streams()
        with torch.no_grad():
            for key, (_, tensor) in reached.tensors.items():
                self._save(key, tensor, earlier)

    def _save(self, key: Any, tensor: torch.Tensor, earlier: Snapshot | None) -> None:
        if not has_storage(tensor):
            return  # No single storage: its parts are not saved.
        storage = tensor.untyped_storage()
        address = storage._cdata
        if address not in self._storages:
            saved = (
                earlier._storages[address][1] if earlier and address in earlier._storages else None
            )
            if saved is None or not _same_bytes(storage, saved):
                saved = storage.clone()
            self._storages[address] = (storage, saved)
        self._tensors[key] = _TensorState(
            tensor=tensor,
            alias=tensor.detach(),
            version=0 if tensor.is_inference() else tensor._version,
            grad_fn=tensor.grad_fn,
            grad=tensor.grad if tensor.is_leaf else None,
            requires_grad=tensor.requires_grad,
        )

    def restore(self) -> list[str]:
        """Write everything back in place. Returns the paths of what could not be restored."""
        failed = []
        with torch.no_grad():
            for storage, saved in self._storages.values():
                if storage.nbytes() != saved.nbytes():
                    storage.resize_(saved.nbytes())
                # A mapped file may be read-only: write only where something has changed.
                if not _same_bytes(storage, saved):
                    storage.copy_(saved)
            for key, state in self._tensors.items():
                if not _restore_tensor(state):
                    failed.append(self.reached.tensors[key][0])
        for _, thing, holder, saved in self._held.values():
            holder.put_back(thing, saved)
        holders.set_streams(self.streams)
        return failed

    def let_go(self, *others: Snapshot) -> None:
        """Drop the copies of large storages that `others`, taken later, found unchanged.

        A further run of the same code is taken to leave them unchanged as well.
        """
        for address, (storage, saved) in list(self._storages.items()):
            # A tensor that was given other memory has left its own: others may not have met it.
            kept = [other._storages.get(address, (None, None))[1] for other in others]
            unchanged = all(copy is saved for copy in kept)
            if unchanged and saved.nbytes() > LARGE_BYTES:
                for snapshot in (self, *others):
                    snapshot._storages[address] = (storage, storage)

    @property
    def nbytes(self) -> int:
        """Size of all storages that were saved."""
        return sum(saved.nbytes() for _, saved in self._storages.values())

    def copy_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor as it was, if its storage was saved; else the tensor itself."""
        if not has_storage(tensor):
            return tensor
        entry = self._storages.get(tensor.untyped_storage()._cdata)
        if entry is None:
            return tensor
        # An inference tensor could not be told to require grad.
        with torch.inference_mode(False), torch.no_grad():
            copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            copy.set_(entry[1], tensor.storage_offset(), tensor.shape, tensor.stride())
            copy = copy.conj() if tensor.is_conj() else copy
            copy = copy._neg_view() if tensor.is_neg() else copy
            return copy.detach().requires_grad_(tensor.requires_grad)


def has_storage(tensor: torch.Tensor) -> bool:
    """Whether one storage holds the tensor: neither sparse nor made of other tensors."""
    return (
        tensor.layout is torch.strided
        and type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        and tensor.device.type != "meta"
    )


LARGE_BYTES = 1 << 26
"""A storage of which no copy is held longer than needed."""

_CHUNK = 1 << 24


def _same_bytes(left: torch.UntypedStorage, right: torch.UntypedStorage) -> bool:
    if left is right or left.nbytes() != right.nbytes():
        return left is right
    # In pieces: comparing makes a mask of the size of what it compares.
    a, b = (_bytes(storage) for storage in (left, right))
    return all(
        torch.equal(a[start : start + _CHUNK], b[start : start + _CHUNK])
        for start in range(0, left.nbytes(), _CHUNK)
    )


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _restore_tensor(state: _TensorState) -> bool:
    tensor, alias = state.tensor, state.alias
    if tensor.is_inference():
        return True
    if (
        tensor.shape != alias.shape
        or tensor.stride() != alias.stride()
        or tensor.data_ptr() != alias.data_ptr()
    ):
        tensor.data = alias
    if tensor.grad_fn is not state.grad_fn:
        # An in-place write gave it a history. Only a tensor without one can be taken back.
        if state.grad_fn is not None or tensor._is_view():
            return False
        tensor.detach_()
    if tensor.grad_fn is None:
        if tensor.requires_grad != state.requires_grad:
            tensor.requires_grad_(state.requires_grad)
        if tensor.grad is not state.grad:
            tensor.grad = state.grad
    if tensor._version != state.version:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (state.version,))
    return True
