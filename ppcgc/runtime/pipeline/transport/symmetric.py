"""``symmetric``: the sender writes into the receiver's memory and signals, over NVLink.

It rests on ``torch.distributed._symmetric_memory``, which torch does not promise to keep, hence
opt-in. Two signals go over an edge: FULL after a block was written, FREE after it was read, so
that the next block never lands on one that a replay still reads.

Note [a signal that never comes]
    The kernel that waits for it would occupy the GPU for ever. Nobody may end it by giving the
    signal in the other rank's place: what is queued behind it would then run on bytes that never
    came, and hand them on. So it has a limit of its own, after which it traps. By then the host
    has raised its error; a rank that was still waiting has no CUDA context any more afterwards,
    and its process can only end.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Queued, Transfer, edge_of
from ppcgc.runtime.pipeline.transport.eager import EagerTransport

FULL, FREE = 0, 1  # channels of the signal pad
_SENDER, _RECEIVER = 0, 1  # ranks within the group of an edge


class SymmetricTransport(EagerTransport):
    """Push and signal on the current stream, for replays alone."""

    name = "symmetric"

    def __init__(
        self, device: torch.device, incoming: Edge | None, outgoing: Edge | None, faults: Faults
    ) -> None:
        super().__init__(device, incoming, outgoing, faults)
        self._from: Any = None
        self._to: Any = None
        self._own: Tensor | None = None  # the sender's half of an edge, only there to meet
        self._remote = torch.empty(0, dtype=torch.uint8, device=device)  # the next rank's block
        self._sent_before = False
        # See Note [a signal that never comes]
        self._limit_ms = int(1000 * (2 * faults.timeout + 2))

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
            landing, self._from = self._meet(incoming, edge_of(self.incoming, "receive over"))
        if outgoing:
            self._own, self._to = self._meet(outgoing, edge_of(self.outgoing, "send over"))
            self._remote = self._to.get_buffer(_RECEIVER, (outgoing,), torch.uint8)
        return landing, self._block(outgoing)

    def warm_up(self) -> None:
        return None  # the two met already

    def _meet(self, nbytes: int, edge: Edge) -> tuple[Tensor, Any]:
        from torch.distributed import _symmetric_memory as symmetric

        try:
            block = symmetric.empty(nbytes, dtype=torch.uint8, device=self.device)
            block.zero_()
            return block, symmetric.rendezvous(block, edge.group)
        except RuntimeError as problem:
            raise TransportError(
                f"transport symmetric: no shared memory with rank {edge.peer} ({problem}); use "
                "`transport: eager`"
            ) from problem

    def send(self, block: Tensor, step: int) -> Transfer:
        target = edge_of(self.outgoing, "send over")
        if self._sent_before:
            self._to.wait_signal(_RECEIVER, FREE, self._limit_ms)
        self._sent_before = True
        self._remote[: block.numel()].copy_(block)
        self._to.put_signal(_RECEIVER, FULL, self._limit_ms)
        return Queued(self.faults, target.peer, step, self.device)

    def receive(self, block: Tensor, step: int) -> Transfer:
        source = edge_of(self.incoming, "receive over")
        self._from.wait_signal(_SENDER, FULL, self._limit_ms)
        return Queued(self.faults, source.peer, step, self.device)

    def release(self) -> None:
        self._from.put_signal(_SENDER, FREE, self._limit_ms)
