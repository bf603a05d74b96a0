"""``captured``: NCCL point-to-point inside the graph, so that a replay hands over by itself.

Note [hand-off inside a graph]
    Each directed edge has a group of its own for it, which has sent a byte before any capture
    (a communicator connects at its first message, and that cannot be captured). Captures are
    ``thread_local``, for the watchdog of NCCL queries events meanwhile. All ranks capture and
    replay the same bucket at the same step, or one would wait for ever.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Queued, passed
from ppcgc.runtime.pipeline.transport.in_graph import InGraphTransport


class CapturedTransport(InGraphTransport):
    """Replays send and receive whole blocks."""

    name = "captured"

    def __init__(
        self, device: torch.device, incoming: Edge | None, outgoing: Edge | None, faults: Faults
    ) -> None:
        super().__init__(device, incoming, outgoing, faults)
        self._taken_here = torch.zeros(1, dtype=torch.int64, device=device)

    def warm_up(self) -> None:
        super().warm_up()
        byte = torch.zeros(1, dtype=torch.uint8, device=self.device)
        if self.incoming is not None:
            _receive(byte, self.incoming)
            self._count(more=0)
        if self.outgoing is not None:
            _send(byte, self.outgoing)
        for edge in (self.incoming, self.outgoing):
            if edge is not None:
                Queued(self.faults, edge.peer, -1, passed(self.device)).confirm()

    def arrive(self, incoming: Tensor | None) -> None:
        if incoming is not None and self.incoming is not None:
            _receive(incoming, self.incoming)
            self._count(more=1)

    def depart(self, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        if outgoing is not None and self.outgoing is not None:
            _send(outgoing, self.outgoing)

    def _count(self, more: int) -> None:
        """See Note [the host counts along] in ``in_graph``."""
        if self.counts:
            from ppcgc.runtime.pipeline.transport.signal_kernels import count

            with torch.cuda.device(self.device):
                count(self._taken_here, self.taken, more)


def _receive(block: Tensor, edge: Edge) -> None:
    _finish(dist.irecv(block, src=edge.peer, group=edge.captured))


def _send(block: Tensor, edge: Edge) -> None:
    _finish(dist.isend(block, dst=edge.peer, group=edge.captured))


def _finish(work: dist.Work | None) -> None:
    if work is None:
        raise RuntimeError("no work although this rank is in the group of the edge")
    work.wait()  # the stream waits, not the host
