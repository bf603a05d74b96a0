"""The boundary of a bucket as one block of bytes: a single message, received in place.

Note [one block for a boundary]
    The keys of a bucket lie one behind the other, each aligned, at places that the sender and the
    receiver work out from the same shapes. The receiver's slots are views of its block, so one
    receive fills them all and nothing is copied. Only the bytes up to the last live row travel;
    padded rows of the keys before the last travel with them, and the receiver resets them (see
    Note [padded rows received are never trusted] in ``carried``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.arena import DeviceArena, Number, aligned, bytes_of_shape, view_bytes
from ppcgc.runtime.carried import TensorInfo

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


def layout_of(tensors: Sequence[TensorInfo], scattered: frozenset[str] = frozenset()) -> Layout:
    """How these tensors lie in a block: as declared, those that travel in parts at the end."""
    entries: list[Entry] = []
    end = 0
    for tensor in sorted(tensors, key=lambda tensor: tensor.name in scattered):
        entries.append(Entry(tensor.name, end, tuple(tensor.shape), tensor.dtype))
        end += aligned(entries[-1].nbytes)
    return tuple(entries)


def wire_bytes(padded: Layout, live: Layout) -> int:
    """Where the last live row of the last key ends in a padded block.

    A key that carries its axis elsewhere than in the first dimension travels whole.
    """
    if not padded:
        return 0
    if not any(entry.nbytes for entry in live):
        return padded[0].offset
    last, rows = padded[-1], live[-1]
    whole = last.shape[1:] != rows.shape[1:]
    return last.offset + (last.nbytes if whole else rows.nbytes)


@dataclass(frozen=True, slots=True)
class Wire:
    """The bytes of a block that a rank sends in a step, and the next receives, as slices.

    Note [parts join where they lie]
        Of keys that all ranks of tp hold alike, each rank sends an equal part of the bytes, cut
        without a thought for rows. The next stage receives its own part in place and gathers the
        others beside it, over its fast links; ``joined`` is the range that is gathered. What lies
        past the last live row is never trusted, whoever it came from.
    """

    pieces: tuple[slice, ...]
    joined: slice | None = None


def wire_of(
    padded: Layout, live: Layout, scattered: frozenset[str], rank: int = 0, ranks: int = 1
) -> Wire:
    """What one of ``ranks`` sends of a block with so many live rows."""
    first = sum(entry.key not in scattered for entry in padded) if ranks > 1 else len(padded)
    pieces = []
    whole = wire_bytes(padded[:first], live[:first])
    if whole:
        pieces.append(slice(0, whole))
    if first == len(padded):
        return Wire(tuple(pieces))
    start = padded[first].offset
    part = _part(wire_bytes(padded[first:], live[first:]) - start, ranks)
    if not part:
        return Wire(tuple(pieces))
    pieces.append(slice(start + rank * part, start + (rank + 1) * part))
    return Wire(tuple(pieces), slice(start, start + ranks * part))


def _part(nbytes: int, ranks: int) -> int:
    """An equal part of so many bytes, rounded up to the alignment."""
    return aligned(-(-nbytes // ranks))


def block_bytes(layout: Layout, scattered: frozenset[str] = frozenset(), ranks: int = 1) -> int:
    """Bytes of a block with this layout, with room for the parts of ``ranks``."""
    end = max((entry.offset + aligned(entry.nbytes) for entry in layout), default=0)
    wire = wire_of(layout, layout, scattered, 0, ranks)
    return end if wire.joined is None else max(end, wire.joined.stop)


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
