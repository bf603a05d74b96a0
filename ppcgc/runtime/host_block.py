"""The block of host-filled slots: written in one place, copied into rings, one block on the device.

Note [bytes belong to one bucket]
    Host-filled slots share one block, and each bucket lays it out compactly for itself, so that
    they travel together. Bytes loaded for one bucket are garbage when read through another
    bucket's views. Only slots whose every padded row is rewritten by every load may sit there,
    and a bucket runs only right after a load of that bucket.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ppcgc.runtime.arena import Number, aligned, bytes_of_shape, view_bytes
from ppcgc.runtime.backends.base import Graph
from ppcgc.runtime.graph_ring import GraphRing, open_reader
from ppcgc.runtime.host_copy import finish_copies, open_copy
from ppcgc.runtime.host_rows import HostRows, bytes_of
from ppcgc.runtime.receiving import receive_rows
from ppcgc.runtime.row_moves import KEPT, TABLE_BYTES, BucketMoves, open_mover

NOTHING = memoryview(b"")  # a load of no bytes


class HostSlot(NamedTuple):
    """A host-filled slot as one bucket lays it out. ``dim`` is the dimension that is padded.

    ``image`` is what a load starts from: the padding where it is a constant, else zero.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    dim: int = 0
    image: Number = 0

    @property
    def nbytes(self) -> int:
        return bytes_of_shape(self.shape, self.dtype)


def offsets_of(slots: Sequence[HostSlot]) -> tuple[tuple[int, ...], int]:
    """Byte offset of each slot in declared order, and the bytes of the whole block."""
    offsets: list[int] = []
    end = 0
    for slot in slots:
        offsets.append(end)
        end += aligned(slot.nbytes)
    return tuple(offsets), end


def _new_event() -> torch.cuda.Event:
    return torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped


def block_bytes(device: torch.device, nbytes: int) -> int:
    """Bytes of a block whose slots take ``nbytes``: a table of moves follows them on a GPU."""
    return nbytes + (TABLE_BYTES if open_mover(device) is not None else 0)


class HostBlock:
    """The block of host-filled slots of a runner: a ring of host copies and one device copy.

    Note [written in one place]
        Rows are written into plain memory, the same for every step, and from there into an entry
        of pinned memory, a few hundred bytes at once. To write into the entries themselves saves
        that copy, and costs more: each entry needs views of its own, which a step finds in no
        cache when it is the entry's turn.

    Note [two ways to the device]
        A step that nobody looks into is loaded by its graph: see Note [one entry a replay] in
        ``graph_ring``. One that is begun and finished apart, for the caller or for hooks that
        plan, needs its slots on the device in between: there the block is copied by a call.

    Note [the host ring]
        The copy to a GPU is asynchronous: the host bytes must not change before it is done. The
        ring has two halves and an event for each, recorded when the ring leaves the half: behind
        the copies of all its entries. The half is entered again only after its event. An event
        for each entry would cost as much as the copy.
    """

    def __init__(
        self,
        device: torch.device,
        nbytes: int,
        entries: int | None = None,
        device_bytes: Tensor | None = None,
    ) -> None:
        """``device_bytes`` are ``block_bytes`` of memory that others use as well."""
        on_gpu = device.type == "cuda"
        self._device = device
        entries = entries or (8 if on_gpu else 1)  # a CPU copies at once
        self.mover = open_mover(device)
        nbytes = block_bytes(device, nbytes)
        if device_bytes is None:
            device_bytes = torch.zeros(nbytes, dtype=torch.uint8, device=device)
        self.device_bytes = device_bytes
        self.written = torch.zeros(nbytes, dtype=torch.uint8, device="cpu")
        self.host_bytes = tuple(
            torch.zeros(nbytes, dtype=torch.uint8, device="cpu", pin_memory=on_gpu)
            for _ in range(entries)
        )
        self._entries = tuple(map(bytes_of, self.host_bytes))
        reader = open_reader(device)
        self.ring = None if reader is None else GraphRing(device_bytes, reader)
        self.copy = open_copy(device)
        if on_gpu:
            weakref.finalize(self, finish_copies, device).atexit = False
        self.turn = entries - 1
        self._half = entries // 2
        self._events: tuple[torch.cuda.Event, ...] = (_new_event(), _new_event()) if on_gpu else ()

    def into_entry(self, written: memoryview[int]) -> int:
        """Copy these bytes into the next entry; waits until no copy reads it any more."""
        self.turn = turn = (self.turn + 1) % len(self.host_bytes)
        if self._events and turn % self._half == 0:
            entered = turn // self._half
            self._events[1 - entered].record(torch.cuda.current_stream(self._device))
            self._events[entered].synchronize()
        self._entries[turn][: len(written)] = written
        return turn

    @property
    def nbytes(self) -> int:
        """Bytes on the device; each entry of the ring has as many on the host."""
        return self.device_bytes.nbytes


class BucketHost:
    """One bucket's layout of the host block: ``begin()``, write the rows, ``push()``."""

    def __init__(self, block: HostBlock, slots: Sequence[HostSlot]) -> None:
        offsets, used = offsets_of(slots)
        self._block, self._ring = block, block.ring
        self._used = used
        end = used + (TABLE_BYTES if block.mover is not None else 0)
        self._rows = tuple(
            HostRows(slot.name, view_bytes(block.written, at, slot.shape, slot.dtype), slot.dim)
            for slot, at in zip(slots, offsets, strict=True)
        )
        self._written = bytes_of(block.written[:end])
        self._slots_written = self._written[:used]
        self._table = self._written[used:].cast("q")
        image = torch.zeros(used, dtype=torch.uint8, device="cpu")
        for slot, at in zip(slots, offsets, strict=True):
            view_bytes(image, at, slot.shape, slot.dtype).fill_(slot.image)
        self._image = ctypes.string_at(image.data_ptr(), used) if used else b""
        table = block.device_bytes[used:end]
        self._moves = BucketMoves(table.view(torch.int64), block.mover)
        self._in_graph = False  # the replay loads
        self._published = False  # for the next replay
        self._copies: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.device_views = tuple(
            view_bytes(block.device_bytes, at, slot.shape, slot.dtype)
            for slot, at in zip(slots, offsets, strict=True)
        )

    def open(self, *, in_graph: bool = False) -> None:
        """A step begins: what an earlier one left undone is forgotten.

        ``in_graph`` leaves the load to the replay that comes next. See Note [two ways to the
        device].
        """
        self._moves.clear()
        self._in_graph = in_graph and self._ring is not None
        self._published = False
        if self._ring is not None and not in_graph:
            self._ring.withdraw()

    def begin(self) -> tuple[HostRows, ...]:
        """Where the slots are written, holding this bucket's padding everywhere."""
        self._slots_written[:] = self._image
        return self._rows

    def move_rows(
        self, slot: Tensor, source: Tensor | None, live: int, name: str, tail: float | None
    ) -> None:
        """Copy a device source into the live rows, the others hold ``tail``; not before ``push``.

        ``tail`` None repeats the last live row, zero when there is none. Raises SourceError.
        """
        self._moves.add(slot, source, live, name, tail)

    def receive_rows(
        self, slot: Tensor, source: Tensor | None, shape: tuple[int, ...], name: str
    ) -> None:
        """Take the live rows, of this shape, of a boundary tensor; at ``push`` or in the replay.

        Nothing is copied when the sender wrote into this very slot. Raises SourceError.
        """
        moves = self._moves
        if moves.has_slots and type(source) is Tensor and shape[1:] == slot.shape[1:]:
            dense = source.layout is torch.strided
            elsewhere = dense and source.data_ptr() != slot.data_ptr()
            if elsewhere and moves.queue(slot, source, shape[0], name, KEPT):
                return
        receive_rows(slot, source, shape, name)

    def push(self) -> None:
        """All slots are written: let the next replay take them, or copy them now."""
        moves, ring = self._moves, self._ring
        # a graph has programs for the moves of its slots and boundary; more of them go by a call
        in_graph = self._in_graph and ring is not None and moves.fit_the_graph()
        end = self._used + moves.write_table(self._table, in_graph=in_graph)
        if ring is not None and in_graph:
            ring.publish(self._written[:end])
            self._published = True
        else:
            self._copy(end)

    def _copy(self, end: int) -> None:
        """Copy so many bytes to the device and move device rows; asynchronous on a GPU."""
        block = self._block
        turn = block.into_entry(self._written[:end])
        sides = self._copies.get((turn, end))
        if sides is None:
            sides = block.device_bytes[:end], block.host_bytes[turn][:end]
            self._copies[turn, end] = sides
        block.copy(*sides)
        self._moves.run()

    def load_in_graph(self, others: Sequence[Tensor]) -> None:
        """Inside the captured region, first: the load of a step that nobody looks into.

        ``others`` are where it may move rows beside the slots, see ``BucketMoves``.
        """
        if self._ring is not None:
            self._ring.take_in_graph()
        self._moves.run_in_graph(others)

    def replay(self, graph: Graph) -> None:
        """Launch the bucket's graph. See Note [one entry a replay] in ``graph_ring``."""
        ring = self._ring
        if ring is None:
            graph.replay()
        else:
            if not self._published:
                ring.publish(NOTHING)
            try:
                graph.replay()
                ring.launched()
            except BaseException:  # an interrupt, or an error of the device
                ring.recount()
                raise
            self._published = False
        self._moves.clear()  # sources may be let go
