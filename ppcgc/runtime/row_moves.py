"""Device-resident rows of a load, moved together: live rows copied, every other row reset.

Note [one launch for all moves]
    A copy and a reset for each slot are two launches each, and launching is most of what a load
    costs. On CUDA the moves of a load are rows of a table that travels to the device behind the
    host block, and one kernel does them all. Elsewhere, and for a source that the kernel does not
    take, each move is a copy and a reset. Both leave the same bytes.

Note [moves inside the graph]
    Where nothing looks at the slots between load and replay, the kernel need not be launched at
    all: the graph of such a bucket has it, behind the kernel that takes the block. The table's
    head has two counts, of the moves to do now and of those that the next replay does; one of
    them is zero. The sources are held until the replay is launched.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.loading import copy_rows, pad_fill, pad_repeat_last


class Kept(Enum):
    """The tail of a move that leaves the rows past live alone."""

    KEPT = "kept"


KEPT = Kept.KEPT
Tail: TypeAlias = float | Kept | None

FIELDS = 8  # int64 values of a move in the table: 64 bytes
MOST_MOVES = 64  # rows of the table; a load with more does the others one by one
WIDEST = 8  # bytes that the kernel reads and writes at once
NOW, IN_GRAPH = 0, 1  # columns of the table's head, which is a row of its own
TABLE_BYTES = (1 + MOST_MOVES) * FIELDS * 8
WORDS = 1024  # that a program moves at once
MOST_PROGRAMS = 256  # for each move; a program does block after block


class Destination:
    """What does not change about a slot of one bucket.

    ``tail`` is what the rows past live hold: a number, None for the last live row again, or
    ``KEPT`` for rows that are left alone.
    """

    __slots__ = (
        "_address",
        "_bits",
        "_device",
        "_dtype",
        "_movable",
        "_pattern",
        "_rest",
        "_row_bytes",
        "_rows",
        "nbytes",
        "slot",
        "tail",
    )

    def __init__(self, slot: Tensor, tail: Tail) -> None:
        self.slot = slot
        self.tail = tail
        self.nbytes = slot.nbytes
        self._movable = slot.dtype.itemsize <= WIDEST and self.nbytes < 2**30
        self._rows = rows = slot.shape[0]
        self._rest = tuple(slot.shape[1:])
        self._dtype, self._device = slot.dtype, slot.get_device()
        self._address = slot.data_ptr()
        self._row_bytes = self.nbytes // rows if rows else 0
        self._bits = self._address | self._row_bytes  # rows begin where both allow
        self._pattern = 0 if tail is None or tail is KEPT else pattern_of(tail, slot.dtype)

    def takes(self, source: Any, live: int) -> bool:
        """Whether the kernel can move this source as it is."""
        return (
            type(source) is Tensor
            and source.dtype is self._dtype
            and source.shape == (live, *self._rest)
            and source.get_device() == self._device
            and source.is_contiguous()
            and not source.requires_grad
            and live <= self._rows
            and self._movable
        )

    def entry(self, source: Tensor, live: int) -> tuple[int, ...]:
        """The move's row of the table; sizes are in words of the width that all of it allows."""
        address, row_bytes = source.data_ptr(), self._row_bytes
        live_bytes = live * row_bytes
        nbytes = live_bytes if self.tail is KEPT else self.nbytes
        together = self._bits | address | live_bytes | nbytes | WIDEST
        width = together & -together  # the largest power of two that divides them all
        return (
            self._address,
            address,
            live_bytes // width,
            nbytes // width,
            row_bytes // width,
            self._pattern,
            self.tail is None,
            width,
        )

    def move(self, source: Tensor | None, live: int, name: str) -> None:
        """The move by itself. Raises SourceError for a wrong source before anything is written."""
        copy_rows(self.slot, source, live, name)
        if self.tail is KEPT:
            return
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


def programs_for(nbytes: int) -> int:
    """How many programs share so many bytes, at the widest word."""
    return max(1, min(MOST_PROGRAMS, nbytes // (WIDEST * WORDS)))


Mover: TypeAlias = Callable[[Tensor, int, int, int], None]  # see ``row_kernel.move_rows``


def runs_kernels(device: torch.device) -> bool:
    """Whether kernels in Triton run on this device."""
    if device.type != "cuda":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def open_mover(device: torch.device) -> Mover | None:
    """The kernel for this device; None where moves are done one by one."""
    if not runs_kernels(device):
        return None
    from ppcgc.runtime.row_kernel import move_rows

    return move_rows


class BucketMoves:
    """The moves of one load of a bucket, in the order in which they are asked for.

    ``device_table`` is where their table arrives on the device, int64. Without a ``mover`` a move
    is done when it is asked for.
    """

    def __init__(self, device_table: Tensor, mover: Mover | None) -> None:
        self._known: dict[str, Destination] = {}
        self._sources: list[Tensor] = []  # alive until the kernel is launched
        self._entries: list[int] = []  # rows of the table, one behind the other
        self._mover = mover
        self._in_graph = 0  # moves that the bucket's graph has programs for
        self._device_table = device_table

    def clear(self) -> None:
        """A new load begins, or the kernel of the last one is launched."""
        self._sources.clear()
        self._entries.clear()

    @property
    def has_slots(self) -> bool:
        """Whether the bucket has slots that are moved so, and a kernel to move them."""
        return self._mover is not None and bool(self._known)

    def add(self, slot: Tensor, source: Tensor | None, live: int, name: str, tail: Tail) -> None:
        """A move of the load. Raises SourceError."""
        if not self.queue(slot, source, live, name, tail):
            self._known[name].move(source, live, name)

    def queue(self, slot: Tensor, source: Tensor | None, live: int, name: str, tail: Tail) -> bool:
        """Leave the move to the kernel; False where that does not take this source."""
        known = self._known.get(name)
        if known is None or known.slot is not slot:
            known = self._known[name] = Destination(slot, tail)
        full = self._mover is None or len(self._sources) == MOST_MOVES
        if full or not known.takes(source, live):
            return False
        assert source is not None  # ``takes`` says so
        self._entries += known.entry(source, live)
        self._sources.append(source)
        return True

    def write_table(self, table: memoryview[int], *, in_graph: bool) -> int:
        """Write the moves into the table of a host entry, int64, and when they are done.

        Returns the bytes of the table that travel, 0 for a bucket without such slots.
        """
        if not self.has_slots:
            return 0
        moves = len(self._sources)
        table[NOW], table[IN_GRAPH] = (0, moves) if in_graph else (moves, 0)
        end = (1 + moves) * FIELDS
        table[FIELDS:end] = array("q", self._entries)
        return end * 8

    def fit_the_graph(self) -> bool:
        """Whether the bucket's graph has programs for all moves of this load."""
        return len(self._sources) <= self._in_graph

    def run(self) -> None:
        """Do what was queued, its table being on the device."""
        if self._mover is not None and self._sources:
            self._mover(self._device_table, NOW, len(self._sources), self._programs())
        self.clear()

    def run_in_graph(self, others: Sequence[Tensor]) -> None:
        """Inside the captured region: do the moves of the replay's load.

        There are programs for the slots that were moved so far, and for ``others`` beside them,
        the boundary's; nothing is captured for a bucket without such slots.
        """
        if self._mover is None or not self._known:
            return
        self._in_graph = min(MOST_MOVES, len(self._known) + len(others))
        self._mover(self._device_table, IN_GRAPH, self._in_graph, self._programs(others))

    def _programs(self, others: Sequence[Tensor] = ()) -> int:
        """How many programs share the largest move."""
        sizes = [known.nbytes for known in self._known.values()]
        sizes += [other.nbytes for other in others]
        return programs_for(max(sizes))
