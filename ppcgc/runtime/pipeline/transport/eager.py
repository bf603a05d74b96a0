"""``eager``: a point-to-point message outside of the graphs, over gloo or NCCL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ppcgc.runtime.pipeline.faults import Faults, reason_of
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.base import Ends, Transfer, edge_of


class Message:
    """One message. Over gloo the host waits for it, over NCCL the stream does.

    Note [completed is not come]
        A message of NCCL whose connection broke says that it is completed. An event behind it on
        the stream happens only when the GPU is through with it.
    """

    def __init__(
        self, work: dist.Work, device: torch.device, faults: Faults, edge: Edge, step: int
    ) -> None:
        self._work: dist.Work | None = work
        self._device = device
        self._on_stream = device.type == "cuda"
        self._faults = faults
        self._passed: Callable[[], bool] | None = None  # whether the stream is behind it
        self.peer, self.step = edge.peer, step
        if self._on_stream:
            faults.look_after(f"message, rank {self.peer}", self)

    def done(self) -> bool:
        if self._passed is not None:
            return self._passed()
        return self._work is None or self._work.is_completed()

    def wait(self) -> None:
        work = self._work
        if work is None:
            return
        if self._on_stream:
            self._order_on_stream(work)
            return
        self._work = None  # see Note [a failure cascades] in ``faults``
        try:
            self._faults.wait_on_host(work, peer=self.peer, step=self.step, what="the boundary")
        finally:
            del work

    def _order_on_stream(self, work: dist.Work) -> None:
        if self._passed is not None:
            return
        try:
            work.wait()
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
            event.record(torch.cuda.current_stream(self._device))
            self._passed = event.query
        except RuntimeError as problem:  # NCCL knows that the rank is gone
            raise self._faults.verdict(
                peer=self.peer,
                step=self.step,
                what="the boundary",
                late=False,
                why=reason_of(problem),
            ) from problem

    def confirm(self) -> None:
        self.wait()
        if self._work is not None:
            self._faults.poll(self.done, peer=self.peer, step=self.step, what="the boundary")


class EagerTransport(Ends):
    """Each directed edge has its own group; a message is queued behind what the stream does."""

    name = "eager"

    def warm_up(self) -> None:
        """One byte over each edge: NCCL connects at the first message."""
        byte = torch.zeros(1, dtype=torch.uint8, device=self.device)
        if self.incoming is not None:
            self.receive(byte, -1).confirm()
        if self.outgoing is not None:
            self.send(byte, -1).confirm()

    def send(self, block: Tensor, step: int) -> Transfer:
        return self._post(dist.isend, block, edge_of(self.outgoing, "send over"), step)

    def receive(self, block: Tensor, step: int) -> Transfer:
        return self._post(dist.irecv, block, edge_of(self.incoming, "receive over"), step)

    def _post(self, op: Callable[..., Any], block: Tensor, edge: Edge, step: int) -> Transfer:
        try:
            (work,) = dist.batch_isend_irecv([dist.P2POp(op, block, edge.peer, edge.group)])
        except RuntimeError as problem:  # the connection is known to be gone already
            raise self.faults.verdict(
                peer=edge.peer, step=step, what="the boundary", late=False, why=reason_of(problem)
            ) from None
        return Message(work, self.device, self.faults, edge, step)
