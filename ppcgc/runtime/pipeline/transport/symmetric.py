"""``symmetric``: the sender writes into the receiver's memory and tells it so, over NVLink.

It rests on ``torch.distributed._symmetric_memory``, which torch does not promise to keep, hence
opt-in. Two counts go over an edge: blocks written, in the receiver's memory, and blocks read, in
the sender's, so that the next block never lands on one that a replay still reads.

Note [a block without bytes is told of]
    A replay without live rows resets padded rows in the block that it takes nothing into. So the
    sender must not write the next block before that: it tells of an empty one, and waits for it
    to be read, like any other.

Note [a count that never comes]
    The kernel that waits for it would occupy the GPU for ever, and nothing but a kernel can look
    at another rank's word cheaply. It looks at a word of the host's as well, which is set where
    the pipeline breaks off: see Note [who gave up passes nothing on] in ``signal_kernels``. The
    process keeps its CUDA context.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.arena import ALIGNMENT, aligned
from ppcgc.runtime.collecting import collector_off
from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.host_rows import bytes_of
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Ends, Queued, Transfer, edge_of

_SENDER, _RECEIVER = 0, 1  # ranks within the group of an edge
_WORD = 8  # bytes of a count


class SymmetricTransport(Ends):
    """Push and tell on the current stream, for replays alone."""

    name = "symmetric"
    nothing = (slice(0, 0),)  # see Note [a block without bytes is told of]

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
        # see Note [a push is always the same] in ``signal_kernels``
        entries, fields = signal_kernels.ENTRIES, signal_kernels.FIELDS
        self._ring = torch.zeros(entries, fields, dtype=torch.int64, pin_memory=True)
        self._ring_on_host = bytes_of(self._ring).cast("q")
        self._looked_up = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self._looked_up_on_host = bytes_of(self._looked_up).cast("q")
        self._sends = 0  # as many entries were written
        # counts of blocks and the block there, by whose memory they lie in
        self._written: Tensor | None = None
        self._read: Tensor | None = None
        self._written_there: Tensor | None = None
        self._read_there: Tensor | None = None
        self._there: Tensor | None = None
        self._meetings: list[Any] = []  # torch's handles keep the other's memory mapped
        self._take = self._release = self._push = _nothing

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
        """Compile the kernels, and record graphs of them: launched in a tenth of Triton's time."""
        kernels, state, given_up = self._kernels, self._state, self._given_up
        if self._written is not None and self._read_there is not None:
            written, read_there = self._written, self._read_there
            self._take = _graph(lambda more: kernels.take(written, state, given_up, more))
            self._release = _graph(lambda more: kernels.tell(read_there, state, kernels.TAKEN))
        if self._read is not None and self._there is not None and self._written_there is not None:
            into, there, read = self._there, self._written_there, self._read
            ring, looked_up = self._ring, self._looked_up
            self._push = _graph(
                lambda more: kernels.push(into, there, read, state, given_up, ring, looked_up, more)
            )

    def send(self, block: Tensor, step: int) -> Transfer:
        target = edge_of(self.outgoing, "send over")
        self._enter(block, target.peer, step)
        self._push()
        return self._queued(target, step)

    def _enter(self, block: Tensor, peer: int, step: int) -> None:
        """Where the next push finds its block. Raises PeerError kinds where the ring stays full."""
        entries, looked_up = self._kernels.ENTRIES, self._looked_up_on_host
        number, address = self._sends, block.data_ptr()
        if address % self._kernels.ALIGNED:
            raise RuntimeError(f"a block at {address:#x} is not aligned")
        if number - looked_up[0] >= entries:
            self.faults.poll(
                lambda: number - looked_up[0] < entries,
                peer=peer,
                step=step,
                what="the boundary to be taken",
            )
        at = number % entries * self._kernels.FIELDS
        self._ring_on_host[at] = address
        self._ring_on_host[at + 1] = block.nbytes
        self._sends = number + 1

    def receive(self, block: Tensor, step: int) -> Transfer:
        source = edge_of(self.incoming, "receive over")
        self._take()
        return self._queued(source, step)

    def release(self) -> None:
        self._release()

    def break_off(self) -> None:
        """Nothing will come any more: kernels that wait end, and nothing is passed on."""
        self._given_up_on_host[0] = 1

    def _queued(self, edge: Edge, step: int) -> Transfer:
        queued = Queued(self.faults, edge.peer, step, self.device)
        happened = queued.done
        queued.done = lambda: happened() and not self._given_up_on_host[0]
        return queued


def _nothing() -> None:
    return None


def _parts(whole: Tensor, nbytes: int) -> tuple[Tensor, Tensor]:
    """A block of so many bytes, and the word of a count behind it."""
    return whole[:nbytes], whole[aligned(nbytes) :][:_WORD].view(torch.int64)


def _graph(body: Callable[[int], None]) -> Callable[[], None]:
    """A kernel as a graph of its own: ``body(1)``, once ``body(0)`` has compiled it."""
    body(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with collector_off(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
        body(1)
    return graph.replay
