"""``symmetric``: a replay writes into the receiver's memory and tells it so, over NVLink.

It rests on ``torch.distributed._symmetric_memory``, which torch does not promise to keep, hence
opt-in. Two counts go over an edge: blocks written, in the receiver's memory, and blocks read, in
the sender's, so that the next block never lands on one that a replay still reads.

Note [a count that never comes]
    The kernel that waits for it would occupy the GPU for ever, and nothing but a kernel can look
    at another rank's word cheaply. It looks at a word of the host's as well, which is set where
    the pipeline breaks off: see Note [who gave up passes nothing on] in ``signal_kernels``. The
    process keeps its CUDA context.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.arena import ALIGNMENT, aligned
from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.host_rows import bytes_of
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import edge_of
from ppcgc.runtime.pipeline.transport.in_graph import InGraphTransport

_SENDER, _RECEIVER = 0, 1  # ranks within the group of an edge
_WORD = 8  # bytes of a count


class SymmetricTransport(InGraphTransport):
    """Replays write whole blocks into the next rank's memory."""

    name = "symmetric"

    def __init__(
        self, device: torch.device, incoming: Edge | None, outgoing: Edge | None, faults: Faults
    ) -> None:
        super().__init__(device, incoming, outgoing, faults)
        from ppcgc.runtime.pipeline.transport import signal_kernels  # Triton: on GPUs only

        self._kernels = signal_kernels
        words = signal_kernels.STATE_WORDS
        self._state = torch.zeros(words, dtype=torch.int64, device=device)
        self._given_up = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self._given_up_on_host = bytes_of(self._given_up).cast("q")
        # counts of blocks and the block there, by whose memory they lie in
        self._written: Tensor | None = None
        self._read: Tensor | None = None
        self._written_there: Tensor | None = None
        self._read_there: Tensor | None = None
        self._there: Tensor | None = None
        self._meetings: list[Any] = []  # torch's handles keep the other's memory mapped

    def blocks(self, incoming: int, outgoing: int) -> tuple[Tensor | None, Tensor | None]:
        """The incoming block is memory that the rank before can write.

        Both ends of an edge allocate and meet, the first edge first. Raises TransportError where
        the GPUs do not reach each other.
        """
        # Note [multicast stays off]: a virtual machine's GPUs may claim NVLink multicast and then
        # fail to bind it; nothing here needs it.
        os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
        landing = None
        if incoming:
            edge = edge_of(self.incoming, "receive over")
            landing, self._written, _, self._read_there = self._meet(incoming, edge, _SENDER)
        if outgoing:
            edge = edge_of(self.outgoing, "send over")
            _, self._read, self._there, self._written_there = self._meet(outgoing, edge, _RECEIVER)
        return landing, self._block(aligned(outgoing))

    def _meet(self, nbytes: int, edge: Edge, other: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A block and a count of this rank, the block and the count of the ``other``."""
        from torch.distributed import _symmetric_memory as symmetric

        size = aligned(nbytes) + ALIGNMENT
        try:
            own = symmetric.empty(size, dtype=torch.uint8, device=self.device)
            own.zero_()
            meeting = symmetric.rendezvous(own, edge.group)
            there = meeting.get_buffer(other, (size,), torch.uint8)
        except RuntimeError as problem:
            raise TransportError(
                f"transport symmetric: no shared memory with rank {edge.peer} ({problem}); use "
                "`transport: eager`"
            ) from problem
        self._meetings.append(meeting)
        return *_parts(own, nbytes), *_parts(there, nbytes)

    def warm_up(self) -> None:
        """Compile the kernels: none can be while a graph is recorded."""
        with torch.cuda.device(self.device):
            self._take(more=0)
            self._release()
            self._push(self._state.view(torch.uint8)[:0], more=0)
        torch.cuda.synchronize(self.device)

    def arrive(self, incoming: Tensor | None) -> None:
        if incoming is not None:
            self._take(more=1)

    def depart(self, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        if incoming is not None:
            self._release()
        if outgoing is not None:
            self._push(outgoing, more=1)

    def _take(self, more: int) -> None:
        """Until the next block has been written here."""
        kernels, written = self._kernels, self._written
        if written is not None:
            kernels.take(written, self._state, self._given_up, self.taken, more)

    def _release(self) -> None:
        """The block that was taken has been read."""
        if self._read_there is not None:
            self._kernels.release(self._read_there, self._state)

    def _push(self, block: Tensor, more: int) -> None:
        """Write the block there, once the one before has been read."""
        kernels, read, there = self._kernels, self._read, self._there
        if read is not None and there is not None and self._written_there is not None:
            kernels.wait_until_read(read, self._state, self._given_up)
            kernels.push(block, there, self._written_there, self._state, more)

    def break_off(self) -> None:
        """Nothing will come any more: kernels that wait end, and nothing is passed on."""
        self._given_up_on_host[0] = 1

    def unbroken(self) -> bool:
        return not self._given_up_on_host[0]


def _parts(whole: Tensor, nbytes: int) -> tuple[Tensor, Tensor]:
    """A block of so many bytes, and the word of a count behind it."""
    return whole[:nbytes], whole[aligned(nbytes) :][:_WORD].view(torch.int64)
