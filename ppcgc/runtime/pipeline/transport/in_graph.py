"""What hand-offs inside the graphs share: a replay moves whole blocks by itself.

Note [the host counts along]
    An event behind a replay happens when all of its work is done. What the last rank waits for is
    that its block has come, and it should prepare the next step meanwhile. So a kernel behind the
    hand-off writes into pinned memory how many blocks were taken, and the host counts its replays:
    those that are told of by ``replayed``, and after a calibration, which replays by itself, anew.
"""

from __future__ import annotations

import torch

from ppcgc.runtime.host_rows import bytes_of
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Queued, Transfer, passed
from ppcgc.runtime.pipeline.transport.eager import EagerTransport
from ppcgc.runtime.row_moves import runs_kernels


class InGraphTransport(EagerTransport):
    """Replays hand over themselves; eager steps go as with ``eager``."""

    in_graph = True

    def __init__(
        self, device: torch.device, incoming: Edge | None, outgoing: Edge | None, faults: Faults
    ) -> None:
        super().__init__(device, incoming, outgoing, faults)
        # the last rank alone waits for its block; without kernels an event has to do
        self.counts = outgoing is None and runs_kernels(device)
        self.taken = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self._taken_on_host = bytes_of(self.taken).cast("q")
        self._replays = 0

    def replayed(self, step: int) -> Transfer | None:
        behind = passed(self.device)
        if self.outgoing is not None:
            Queued(self.faults, self.outgoing.peer, step, lambda: behind() and self.unbroken())
        if self.incoming is None:
            return None
        self._replays = number = self._replays + 1

        def came() -> bool:
            there = self._taken_on_host[0] >= number if self.counts else behind()
            return there and self.unbroken()

        return Queued(self.faults, self.incoming.peer, step, came)

    def recount(self) -> None:
        torch.cuda.synchronize(self.device)
        self._replays = self._taken_on_host[0]

    def unbroken(self) -> bool:
        """Whether what is done has really happened."""
        return True
