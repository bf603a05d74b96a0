"""Device-resident slots of a load, moved together: live rows copied, every other row reset.

Note [one launch for all moves]
    A copy and a reset for each slot are two launches each, and launching is most of what a load
    costs. On CUDA the moves of a load are rows of a table that travels to the device with the
    host block, in the one copy that there is anyway, and one kernel does them all. Elsewhere, and
    for a source that the kernel does not take, each move is a copy and a reset. Both leave the
    same bytes.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.loading import copy_rows, pad_fill, pad_repeat_last

FIELDS = 8  # int64 values of a move in the table: 64 bytes
MOST_MOVES = 64  # rows of the table; a load with more does the others one by one
WIDEST = 8  # bytes that the kernel reads and writes at once


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """What does not change about a slot of one bucket. ``tail`` None repeats the last live row."""

    slot: Tensor
    address: int
    nbytes: int
    rows: int
    row_bytes: int
    rest: tuple[int, ...]  # extents after the padded one
    tail: float | None
    pattern: int  # eight bytes of tail, as a signed integer

    @classmethod
    def of(cls, slot: Tensor, tail: float | None) -> Destination:
        return cls(
            slot=slot,
            address=slot.data_ptr(),
            nbytes=slot.nbytes,
            rows=slot.shape[0],
            row_bytes=slot.nbytes // slot.shape[0] if slot.shape[0] else 0,
            rest=tuple(slot.shape[1:]),
            tail=tail,
            pattern=pattern_of(tail or 0, slot.dtype),
        )

    def takes(self, source: Any, live: int) -> bool:
        """Whether the kernel can move this source as it is."""
        slot = self.slot
        return (
            type(source) is Tensor
            and source.dtype is slot.dtype
            and source.shape == (live, *self.rest)
            and live <= self.rows
            and source.device == slot.device
            and not source.requires_grad
            and source.is_contiguous()
            and slot.dtype.itemsize <= WIDEST
        )

    def entry(self, source: Tensor, live: int) -> tuple[int, ...]:
        """The move's row of the table; sizes are in words of the width that all of it allows."""
        address, live_bytes = source.data_ptr(), live * self.row_bytes
        together = self.address | address | live_bytes | self.nbytes | self.row_bytes | WIDEST
        width = together & -together  # the largest power of two that divides them all
        return (
            self.address,
            address,
            live_bytes // width,
            self.nbytes // width,
            self.row_bytes // width,
            self.pattern,
            self.tail is None,
            width,
        )

    def move(self, source: Tensor | None, live: int, name: str) -> None:
        """The move by itself. Raises SourceError for a wrong source before anything is written."""
        copy_rows(self.slot, source, live, name)
        if self.tail is None:
            pad_repeat_last(self.slot, live)
        else:
            pad_fill(self.slot, live, self.tail)


def pattern_of(value: float, dtype: torch.dtype) -> int:
    """Eight bytes of ``value`` in ``dtype``, one behind the other, as a signed integer."""
    if not value:
        return 0
    cell = torch.full((1,), value, dtype=dtype)
    raw = ctypes.string_at(cell.data_ptr(), dtype.itemsize) * (WIDEST // dtype.itemsize)
    return int.from_bytes(raw, "little", signed=True)


Mover: TypeAlias = Callable[[Tensor, int, int, int], None]  # see ``row_kernel.move_rows``


def open_mover(device: torch.device) -> Mover | None:
    """The kernel for this device; None where moves are done one by one."""
    if device.type != "cuda":
        return None
    try:
        from ppcgc.runtime.row_kernel import move_rows
    except ImportError:  # a torch without Triton
        return None
    return move_rows


class BucketMoves:
    """The moves of one load of a bucket, in the order in which they are asked for.

    ``table_at`` is where their table begins in the host block, of which ``host`` are the ring's
    entries and ``device`` is the other side. Without a ``mover`` a move is done when it is asked
    for, with one by ``run``.
    """

    def __init__(
        self, host: Sequence[Tensor], device: Tensor, table_at: int, mover: Mover | None
    ) -> None:
        self._known: dict[str, Destination] = {}
        self._sources: list[Tensor] = []  # alive until the kernel is launched
        self._mover = mover
        self._words = 0  # of the largest destination
        if mover is not None:
            end = table_at + MOST_MOVES * FIELDS * 8
            self._tables = tuple(_numbers(entry[table_at:end]) for entry in host)
            self._device_table = device[table_at:end].view(torch.int64)

    def clear(self) -> None:
        """A new load begins."""
        if self._sources:
            self._sources.clear()
            self._words = 0

    def add(
        self,
        turn: int,
        slot: Tensor,
        source: Tensor | None,
        live: int,
        name: str,
        tail: float | None,
    ) -> None:
        """A move of the load in entry ``turn`` of the ring. Raises SourceError."""
        known = self._known.get(name)
        if known is None or known.slot is not slot:
            known = self._known[name] = Destination.of(slot, tail)
        queued = len(self._sources)
        if self._mover is None or queued == MOST_MOVES or not known.takes(source, live):
            known.move(source, live, name)
            return
        assert source is not None  # ``takes`` says so
        entry = known.entry(source, live)
        at = queued * FIELDS
        self._tables[turn][at : at + FIELDS] = array("q", entry)
        self._sources.append(source)
        self._words = max(self._words, entry[3])

    @property
    def table_bytes(self) -> int:
        """How much of the table the load has filled."""
        return len(self._sources) * FIELDS * 8

    def run(self) -> None:
        """Do what was queued, its table being on the device."""
        if self._mover is not None and self._sources and self._words:
            self._mover(self._device_table, len(self._sources), self._words, FIELDS)
        self.clear()


def _numbers(rows: Tensor) -> memoryview[int]:
    memory = (ctypes.c_char * rows.nbytes).from_address(rows.data_ptr())
    return memoryview(memory).cast("B").cast("q")
