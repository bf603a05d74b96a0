"""The boundary of a bucket as one block of bytes: a single message, received in place.

Note [one block for a boundary]
    The keys of a bucket lie one behind the other, each aligned, at places that the sender and the
    receiver work out from the same shapes. The receiver's slots are views of its block, so one
    receive fills them all and nothing is copied. Only the bytes up to the last live row travel;
    padded rows of the keys before the last travel with them, and the receiver resets them (see
    Note [padded rows received are never trusted] in ``stage``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena, Number, aligned, bytes_of_shape, view_bytes

Extents: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key in a block."""

    key: str
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        return bytes_of_shape(self.shape, self.dtype)

    def __str__(self) -> str:
        return f"{self.key} {self.dtype} {list(self.shape)}"


Layout: TypeAlias = tuple[Entry, ...]


class _Measuring(DeviceArena):
    """Allocates nothing, notes what is asked for."""

    def __init__(self) -> None:
        super().__init__(torch.device("meta"))
        self.entries: dict[str, Entry] = {}
        self.end = 0

    def rows(
        self,
        name: str,
        shape: tuple[int, ...],
        full: tuple[int, ...],
        dtype: torch.dtype,
        initial: Number = 0,
    ) -> Tensor:
        entry = Entry(name.partition(".")[2], self.end, tuple(shape), dtype)
        self.entries[name] = entry
        self.end += aligned(entry.nbytes)
        return torch.empty(shape, dtype=dtype, device="meta")


def layout_of(buffers: Callable[[DeviceArena, Any, Any], object], rows: Extents) -> Layout:
    """How the keys that ``buffers`` makes for these rows lie in a block, in declared order."""
    arena = _Measuring()
    buffers(arena, rows, rows)
    return tuple(arena.entries.values())


def block_bytes(layout: Layout) -> int:
    """Bytes of a block with this layout."""
    return max((entry.offset + aligned(entry.nbytes) for entry in layout), default=0)


def wire_bytes(padded: Layout, live: Layout) -> int:
    """Bytes of a padded block up to the last live row of its last key.

    A key that carries its axis elsewhere than in the first dimension travels whole.
    """
    if not padded:
        return 0
    last, rows = padded[-1], live[-1]
    if rows.nbytes == 0 and len(padded) == 1:
        return 0
    whole = last.shape[1:] != rows.shape[1:]
    return last.offset + (last.nbytes if whole else rows.nbytes)


class BlockArena(DeviceArena):
    """Keys of a boundary at their places in a block, bucket by bucket; other slots as ever.

    ``blocks`` maps the prefix of a name (``received``, ``handed``) to its block, ``layouts`` to
    the layout of each bucket in it.
    """

    def __init__(
        self,
        device: torch.device,
        blocks: Mapping[str, Tensor],
        layouts: Mapping[str, Mapping[Extents, Layout]],
    ) -> None:
        super().__init__(device)
        self._blocks = dict(blocks)
        self._layouts = layouts
        self._places: dict[str, Entry] = {}

    def lay_out(self, bucket: Extents) -> None:
        self._places = {
            f"{prefix}.{entry.key}": entry
            for prefix, layouts in self._layouts.items()
            for entry in layouts[bucket]
        }

    def is_placed(self, name: str) -> bool:
        return name.partition(".")[0] in self._blocks or super().is_placed(name)

    def rows(
        self,
        name: str,
        shape: tuple[int, ...],
        full: tuple[int, ...],
        dtype: torch.dtype,
        initial: Number = 0,
    ) -> Tensor:
        entry = self._places.get(name)
        if entry is None:
            return super().rows(name, shape, full, dtype, initial)
        block = self._blocks[name.partition(".")[0]]
        return view_bytes(block, entry.offset, entry.shape, entry.dtype)

    def named(self, prefix: str) -> tuple[tuple[str, Tensor], ...]:
        blocks = (("block", block) for name, block in self._blocks.items() if f"{name}." == prefix)
        return (*super().named(prefix), *blocks)
