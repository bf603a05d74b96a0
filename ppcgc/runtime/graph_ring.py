"""Host bytes that graphs read by themselves: each replay begins with the next entry of a ring.

Note [one entry a replay]
    A call that copies the host block costs as much as the launch of the graph. So the graph's
    first kernel reads the block where the host wrote it, in pinned memory. It cannot be told
    which entry: a graph has one set of arguments. It counts. Entry ``n`` of the ring is taken by
    the n-th replay after the last, whichever bucket it is of, and has the number ``n + 1`` in its
    head, written last. So each replay of a runner is given one entry, an empty one where a copy
    has filled the block already, and graphs are replayed through ``BucketHost.replay`` alone.
    A body that is run outside of a replay, to warm up, finds no entry with its number and leaves
    the block as it is: what was published for a replay that never came is withdrawn before.

Note [no event for an entry]
    The kernel writes how many entries were taken into pinned memory as well, when all of its
    bytes are read. So the host knows which entries it may write without an event, by reading a
    word of its own memory.
"""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.errors import AddressError
from ppcgc.runtime.host_rows import bytes_of
from ppcgc.runtime.row_moves import runs_kernels

ENTRIES = 8
HEAD = 8  # int64 words before the bytes of an entry
NUMBER, WORDS = 0, 1  # words of the head: which replay takes it, and how much of it
WORD = 8  # bytes
LINE = 256  # bytes
_NAP = 20e-6  # seconds between two looks at a full ring

# ring, device block, the device's count, the host's copy of it, all int64: see ``ring_kernel``
Reader: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], None]


def open_reader(device: torch.device) -> Reader | None:
    """The kernel for this device; None where loads are copied by a call."""
    if not runs_kernels(device):
        return None
    from ppcgc.runtime.ring_kernel import take_entry

    return take_entry


class GraphRing:
    """Entries of ``nbytes`` on the host, which a runner's replays take one after the other."""

    def __init__(self, device_bytes: Tensor, read: Reader) -> None:
        device = device_bytes.device
        on_gpu = device.type == "cuda"
        # no two entries in one line of a cache, which a replay's reads may leave filled
        stride = -(-(HEAD * WORD + device_bytes.nbytes) // LINE) * LINE
        self._memory = torch.zeros(
            ENTRIES, stride, dtype=torch.uint8, device="cpu", pin_memory=on_gpu
        )
        self._heads = tuple(bytes_of(entry).cast("q")[:HEAD] for entry in self._memory)
        self._entries = tuple(bytes_of(entry[HEAD * WORD :]) for entry in self._memory)
        self._taken = torch.zeros(1, dtype=torch.int64, device="cpu", pin_memory=on_gpu)
        self._taken_on_host = bytes_of(self._taken).cast("q")
        self._count = torch.zeros(1, dtype=torch.int64, device=device)
        self._device, self._read = device, read
        # views made once: the captured region has a kernel of the load and no operation of torch
        self._words = self._memory.view(torch.int64)
        whole = device_bytes.nbytes // WORD * WORD
        self._device_words = device_bytes[:whole].view(torch.int64)
        self._launched = 0

    def _wait(self) -> None:
        """Raises what the device has failed with, or AddressError for a load that nobody took.

        Note [who counts wrong]
            A replay past ``BucketHost.replay`` takes an entry that was not launched for it, or
            none at all. The counts differ then, and which step saw which load is anybody's guess.
        """
        taken = self._taken_on_host[0]
        if taken > self._launched:
            raise AddressError(
                f"{self._launched} replays were launched and {taken} loads are taken: a graph was "
                "replayed past its runner; replay through `run` alone, and build the runner anew"
            )
        while self._launched - self._taken_on_host[0] >= ENTRIES:
            idle = self._device_is_idle()
            taken = self._taken_on_host[0]
            if idle and self._launched - taken >= ENTRIES:
                raise AddressError(
                    f"{self._launched} replays were launched and are done, {taken} of them took "
                    "their load: a graph was replayed past its runner; replay through `run` alone"
                )
            sleep(_NAP)

    def _device_is_idle(self) -> bool:
        return self._device.type == "cpu" or torch.cuda.current_stream(self._device).query()

    def publish(self, written: memoryview[int]) -> None:
        """These bytes, whole words of them, are for the next replay.

        Waits until the replay before has taken the entry. Raises AddressError, see ``_wait``.
        """
        launched = self._launched
        if not 0 <= launched - self._taken_on_host[0] < ENTRIES:
            self._wait()
        at, nbytes = launched % ENTRIES, len(written)
        self._entries[at][:nbytes] = written
        head = self._heads[at]
        head[WORDS] = nbytes // WORD
        head[NUMBER] = launched + 1

    def withdraw(self) -> None:
        """What was published for the next replay, if anything, is for nobody.

        An entry with another number may still be waited for by a replay that is on its way.
        """
        head = self._heads[self._launched % ENTRIES]
        if head[NUMBER] == self._launched + 1:
            head[NUMBER] = 0

    def launched(self) -> None:
        """A replay that takes the published entry is on its way."""
        self._launched += 1

    def recount(self) -> None:
        """Nobody knows whether the last replay is on its way: wait, and see what was taken."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._launched = self._taken_on_host[0]

    def take_in_graph(self) -> None:
        """Inside the captured region, first: the published entry becomes the device's block."""
        self._read(self._words, self._device_words, self._count, self._taken)
