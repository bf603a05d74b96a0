"""The memory of a tape, storage by storage: whose it is, and from which step to which it lives."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from ppcgc.runtime.backends.lifetimes import Block, Plan, plan
from ppcgc.runtime.backends.model_line import ModelLine
from ppcgc.runtime.backends.uses import EscapedTensor, ExternalUse

# Note [intermediates are noted, not kept]
# A tape that kept every intermediate of a 135M model held 9 GB over eight buckets; planned by
# lifetime the same graphs need 57 MB. So a storage made by the body is known only through a weak
# reference to its Python object, which torch keeps as long as the storage. Its address may be
# used again as soon as it dies: the callback of the weak reference forgets the address at that
# very moment, so that two storages never pass for one. (A weak reference to the C++ object would
# pin the address, and a small block of the heap with it: thousands of those between the body's
# large blocks kept glibc from using these again, and cost gigabytes of resident memory.)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRef:
    """A tensor by the number of its storage and its geometry (``offset`` in elements)."""

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    conjugate: bool
    negative: bool


@dataclass(slots=True, kw_only=True)
class StorageEntry:
    """One storage. ``held`` for memory older than the capture, ``alive`` for what the body made.

    ``first`` and ``last`` are the steps of its first and last use, None while no step used it.
    """

    nbytes: int
    held: torch.UntypedStorage | None = None
    alive: weakref.ref[torch.UntypedStorage] | None = None
    host_constant: bool = False
    first: int | None = None
    last: int | None = None
    shape: tuple[int, ...]
    dtype: torch.dtype
    op: str
    line: ModelLine


class StorageBook:
    """Numbers storages as the recorder meets them."""

    def __init__(self) -> None:
        self.entries: list[StorageEntry] = []
        self.external_uses: dict[tuple[TensorRef, bool], ExternalUse] = {}
        self._numbers: dict[int, int] = {}  # address of the StorageImpl -> number
        self._refs: dict[TensorRef, TensorRef] = {}  # one object for equal references

    def used(
        self, tensor: torch.Tensor, step: int, written: bool, op: str, line: ModelLine
    ) -> TensorRef:
        """A step used ``tensor``. What the capture has not made is external, and held."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is None:
            number = self._enter(tensor, storage, op, line, held=True)
        ref = self._ref(number, tensor)
        self.touch(ref, step)
        entry = self.entries[number]
        if entry.held is not None:
            if (ref, written) not in self.external_uses:
                self.external_uses[ref, written] = _external_use(tensor, written, op, line)
        else:
            entry.nbytes = max(entry.nbytes, storage.nbytes())  # a step may have resized it
        return ref

    def made(
        self, tensor: torch.Tensor, op: str, line: ModelLine, step: int | None = None
    ) -> TensorRef:
        """The body made ``tensor`` in new memory; ``step`` wrote it, None for memory only taken."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is None:
            number = self._enter(tensor, storage, op, line, held=False)
        ref = self._ref(number, tensor)
        if step is not None:
            self.touch(ref, step)
        return ref

    def host_constant(self, tensor: torch.Tensor, op: str, line: ModelLine) -> TensorRef:
        """The body built ``tensor`` from values on the host."""
        ref = self.made(tensor, op, line)
        self.entries[ref.storage].host_constant = True
        # nobody declared the values, and they are those of the capture for ever: for `verify`
        self.external_uses[ref, False] = _external_use(tensor, False, op, line)
        return ref

    def image(self, tensor: torch.Tensor, op: str, line: ModelLine) -> TensorRef:
        """Hold ``tensor``, the values of a host constant; it is no external."""
        entry = StorageEntry(
            nbytes=tensor.untyped_storage().nbytes(),
            held=tensor.untyped_storage(),
            shape=tuple(tensor.shape),
            dtype=tensor.dtype,
            op=op,
            line=line,
        )
        self.entries.append(entry)
        return self._ref(len(self.entries) - 1, tensor)

    def is_host_constant(self, tensor: torch.Tensor) -> bool:
        number = self._numbers.get(tensor.untyped_storage()._cdata)
        return number is not None and self.entries[number].host_constant

    def touch(self, ref: TensorRef, step: int) -> None:
        """Step ``step`` uses the storage of ``ref``."""
        entry = self.entries[ref.storage]
        entry.first = step if entry.first is None else entry.first
        entry.last = step

    def settle(self) -> tuple[EscapedTensor, ...]:
        """After the body: hold what the model kept, and say what that is.

        Garbage is collected only if something seems kept, since a cycle alone can do that.
        """
        if any(entry.alive is not None and entry.alive() is not None for entry in self.entries):
            gc.collect()
        escaped: list[EscapedTensor] = []
        for entry in self.entries:
            entry.held = entry.held if entry.alive is None else entry.alive()
            if entry.alive is not None and entry.held is not None:
                escaped.append(
                    EscapedTensor(
                        nbytes=entry.nbytes,
                        shape=entry.shape,
                        dtype=entry.dtype,
                        op=entry.op,
                        line=entry.line,
                    )
                )
            entry.alive = None
        self._numbers.clear()
        return tuple(escaped)

    def placed(self) -> tuple[dict[int, int], int]:
        """Where in a pool each intermediate begins, by number, and the bytes of that pool."""
        needed: dict[int, Block] = {}
        for number, entry in enumerate(self.entries):
            if entry.held is None and entry.first is not None and entry.last is not None:
                needed[number] = Block(nbytes=entry.nbytes, first=entry.first, last=entry.last)
        made: Plan = plan(tuple(needed.values()))
        return dict(zip(needed, made.bases, strict=True)), made.nbytes

    def _enter(
        self,
        tensor: torch.Tensor,
        storage: torch.UntypedStorage,
        op: str,
        line: ModelLine,
        *,
        held: bool,
    ) -> int:
        number = len(self.entries)
        address = storage._cdata
        forget: Callable[[object], object] = partial(_forget, self._numbers, address)
        self._numbers[address] = number
        self.entries.append(
            StorageEntry(
                nbytes=storage.nbytes(),
                held=storage if held else None,
                alive=None if held else weakref.ref(storage, forget),
                shape=tuple(tensor.shape),
                dtype=tensor.dtype,
                op=op,
                line=line,
            )
        )
        return number

    def _ref(self, number: int, tensor: torch.Tensor) -> TensorRef:
        ref = TensorRef(
            storage=number,
            dtype=tensor.dtype,
            shape=tuple(tensor.shape),
            stride=tensor.stride(),
            offset=int(tensor.storage_offset()),
            conjugate=tensor.is_conj(),
            negative=tensor.is_neg(),
        )
        return self._refs.setdefault(ref, ref)


def _forget(numbers: dict[int, int], address: int, _: object) -> None:
    numbers.pop(address, None)


def _external_use(tensor: torch.Tensor, written: bool, op: str, line: ModelLine) -> ExternalUse:
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    reach = sum(
        (extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return ExternalUse(
        storage_address=tensor.untyped_storage().data_ptr(),
        start=start,
        end=start + (reach + 1) * size if tensor.numel() else start,
        shape=tuple(tensor.shape),
        dtype=tensor.dtype,
        written=written,
        op=op,
        line=line,
    )
