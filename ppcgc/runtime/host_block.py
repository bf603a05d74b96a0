"""The block of host-filled slots: a ring of copies on the host, one on the device.

Note [bytes belong to one bucket]
    Host-filled slots share one block, and each bucket lays it out compactly for itself, so that
    one copy loads them all. Bytes loaded for one bucket are garbage when read through another
    bucket's views. Only slots whose every padded row is rewritten by every load may sit there,
    and a bucket runs only right after a load of that bucket.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ppcgc.runtime.arena import Number, aligned, bytes_of_shape, view_bytes
from ppcgc.runtime.host_copy import finish_copies, open_copy
from ppcgc.runtime.host_rows import HostRows, bytes_of
from ppcgc.runtime.receiving import receive_rows
from ppcgc.runtime.row_moves import KEPT, TABLE_BYTES, BucketMoves, open_mover


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostSlot:
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
        entries = entries or (8 if on_gpu else 2)  # a CPU copies at once: two show what is stale
        self.mover = open_mover(device)
        nbytes = block_bytes(device, nbytes)
        if device_bytes is None:
            device_bytes = torch.zeros(nbytes, dtype=torch.uint8, device=device)
        self.device_bytes = device_bytes
        self.host_bytes = tuple(
            torch.zeros(nbytes, dtype=torch.uint8, pin_memory=on_gpu) for _ in range(entries)
        )
        self.copy = open_copy(device)
        if on_gpu:
            weakref.finalize(self, finish_copies, device).atexit = False
        self.turn = entries - 1
        self._half = entries // 2
        self._events: tuple[torch.cuda.Event, ...] = (_new_event(), _new_event()) if on_gpu else ()

    def next_entry(self) -> int:
        """The entry that is written next; waits until no copy reads it any more."""
        self.turn = turn = (self.turn + 1) % len(self.host_bytes)
        if self._events and turn % self._half == 0:
            entered = turn // self._half
            self._events[1 - entered].record()
            self._events[entered].synchronize()
        return turn

    @property
    def nbytes(self) -> int:
        """Bytes on the device; each entry of the ring has as many on the host."""
        return self.device_bytes.nbytes


class BucketHost:
    """One bucket's layout of the host block: ``begin()``, write the rows, ``push()``."""

    def __init__(self, block: HostBlock, slots: Sequence[HostSlot]) -> None:
        offsets, used = offsets_of(slots)
        self._block = block
        self._used = used
        self._entries = tuple(
            tuple(
                HostRows(slot.name, view_bytes(entry, at, slot.shape, slot.dtype), slot.dim)
                for slot, at in zip(slots, offsets, strict=True)
            )
            for entry in block.host_bytes
        )
        self._copies = tuple(
            (block.device_bytes[:used], entry[:used]) for entry in block.host_bytes
        )
        image = torch.zeros(used, dtype=torch.uint8)
        for slot, at in zip(slots, offsets, strict=True):
            view_bytes(image, at, slot.shape, slot.dtype).fill_(slot.image)
        self._image = ctypes.string_at(image.data_ptr(), used) if used else b""
        self._bytes = tuple(bytes_of(entry[:used]) for entry in block.host_bytes)
        self._moves = BucketMoves(block.host_bytes, block.device_bytes, used, block.mover)
        self._in_graph = False
        self._longer: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.device_views = tuple(
            view_bytes(block.device_bytes, at, slot.shape, slot.dtype)
            for slot, at in zip(slots, offsets, strict=True)
        )

    def open(self, *, in_graph: bool = False) -> None:
        """A step begins: what an earlier one left unmoved is forgotten.

        ``in_graph`` leaves its moves to the replay that comes next, until ``launched``. See
        Note [moves inside the graph] in ``row_moves``.
        """
        self._moves.clear()
        self._in_graph = in_graph

    def begin(self) -> tuple[HostRows, ...]:
        """The next entry of the ring, holding this bucket's padding everywhere."""
        turn = self._block.next_entry()
        self._bytes[turn][:] = self._image
        return self._entries[turn]

    def move_rows(
        self, slot: Tensor, source: Tensor | None, live: int, name: str, tail: float | None
    ) -> None:
        """Copy a device source into the live rows, the others hold ``tail``; done by ``push``.

        ``tail`` None repeats the last live row, zero when there is none. Raises SourceError.
        """
        self._moves.add(slot, source, live, name, tail)

    def receive_rows(
        self, slot: Tensor, source: Tensor | None, shape: tuple[int, ...], name: str
    ) -> None:
        """Take the live rows, of this shape, of a boundary tensor; done by ``push``.

        Nothing is copied when the sender wrote into this very slot. Raises SourceError.
        """
        moves = self._moves
        if moves.has_slots and isinstance(source, Tensor) and shape[1:] == slot.shape[1:]:
            elsewhere = source.data_ptr() != slot.data_ptr()
            if elsewhere and moves.queue(slot, source, shape[0], name, KEPT):
                return
        receive_rows(slot, source, shape, name)

    def push(self) -> None:
        """Copy the entry begun last to the device and move device rows; asynchronous on a GPU."""
        turn, moves = self._block.turn, self._moves
        in_graph = self._in_graph and moves.fit_the_graph()
        table = moves.write_table(turn, in_graph=in_graph)
        device_bytes, host_bytes = self._with_table(turn, table) if table else self._copies[turn]
        self._block.copy(device_bytes, host_bytes)
        if not in_graph:
            moves.run()

    def move_in_graph(self, others: Sequence[Tensor]) -> None:
        """Inside the captured region, first: the moves of the load. See ``BucketMoves``."""
        self._moves.run_in_graph(others)

    def launched(self) -> None:
        """The replay is launched: sources of its moves may be let go."""
        self._moves.clear()

    def _with_table(self, turn: int, nbytes: int) -> tuple[Tensor, Tensor]:
        """Both sides of the copy, the table of moves behind the slots included."""
        pair = self._longer.get((turn, nbytes))
        if pair is None:
            end, block = self._used + nbytes, self._block
            pair = block.device_bytes[:end], block.host_bytes[turn][:end]
            self._longer[turn, nbytes] = pair
        return pair
