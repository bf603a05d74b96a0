"""Memory of slots: sizes and addresses are final before the first warm-up.

Note [addresses are frozen]
    A graph replays on the addresses it saw at capture. Every slot is therefore memory of the
    arena, never a caller's tensor, and nothing here is resized or moved once it was handed out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.dims import check_shape

ALIGNMENT = 64  # bytes; a vectorised kernel may read 16 at a time, a CPU cache line holds 64

Number: TypeAlias = int | float | bool


def aligned(size: int) -> int:
    """``size`` bytes rounded up to the arena's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def bytes_of_shape(shape: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes of a contiguous tensor."""
    return math.prod(shape) * dtype.itemsize


def view_bytes(block: Tensor, offset: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A typed view of some bytes of a uint8 block."""
    return block[offset : offset + bytes_of_shape(shape, dtype)].view(dtype).view(shape)


def first_rows(buffer: Tensor, shape: Sequence[int]) -> Tensor:
    """The view of a buffer that has ``shape`` and begins where the buffer does."""
    for dim, extent in enumerate(shape):
        buffer = buffer.narrow(dim, 0, extent)
    return buffer


class DeviceArena:
    """Slots that keep one address for all buckets, and the output buffers of a stage."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: dict[str, Tensor] = {}
        self._foreign: set[str] = set()  # buffers that lie in memory which is not this arena's
        self._lent: dict[str, Tensor] = {}  # bytes for buffers that are not made yet

    def adopt(self, name: str, buffer: Tensor) -> None:
        """Use memory of another stage's arena under this name; before the first ``rows``."""
        self._buffers[name] = buffer
        self._foreign.add(name)

    def lend(self, name: str, memory: Tensor) -> None:
        """Let a buffer lie in these bytes, which others use as well; before its first ``rows``."""
        self._lent[name] = memory

    def is_placed(self, name: str) -> bool:
        """Whether it is settled already where a buffer lies."""
        return name in self._buffers

    def rows(
        self,
        name: str,
        shape: tuple[int, ...],
        full: tuple[int, ...],
        dtype: torch.dtype,
        initial: Number = 0,
    ) -> Tensor:
        """The first ``shape`` of a buffer of shape ``full``, which is made at the first call.

        Raises DimError for a negative extent.
        """
        buffer = self._buffers.get(name)
        if buffer is None:
            sound, memory = check_shape(name, full), self._lent.get(name)
            if memory is None:
                buffer = torch.full(sound, initial, dtype=dtype, device=self._device)
            else:
                buffer = view_bytes(memory, 0, sound, dtype)
                self._foreign.add(name)
            self._buffers[name] = buffer
        return first_rows(buffer, shape)

    def host_rows(
        self, name: str, shape: tuple[int, ...], full: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        """As ``rows``, in host memory: slots and twins that only host code reads."""
        buffer = self._buffers.get(name)
        if buffer is None:
            buffer = self._buffers[name] = torch.zeros(check_shape(name, full), dtype=dtype)
        return first_rows(buffer, shape)

    def lay_out(self, bucket: tuple[int, ...]) -> None:
        """What is asked for from here on belongs to this bucket. All share one address here."""

    def named(self, prefix: str) -> tuple[tuple[str, Tensor], ...]:
        """The whole buffers whose names start so, with the prefix cut off."""
        return tuple(
            (name.removeprefix(prefix), buffer)
            for name, buffer in self._buffers.items()
            if name.startswith(prefix)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arena's own buffers, adopted and lent ones left out."""
        return sum(
            buffer.nbytes for name, buffer in self._buffers.items() if name not in self._foreign
        )
