"""Hand-offs inside graphs on one GPU: both ends of an edge in one process, over plain memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.arena import ALIGNMENT, aligned
from ppcgc.runtime.pipeline.groups import Edge
from ppcgc.runtime.pipeline.transport.symmetric import SymmetricTransport, _parts

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ROWS = 100  # bytes of a block: no whole number of words


class NoFaults:
    """Nobody else is there to fail; a wait that is in vain ends the test by its own limit."""

    def look_after(self, name: str, transfer: Any) -> None:
        return None

    def poll(self, done: Callable[[], bool], **what: Any) -> None:
        while not done():
            pass


class OneProcess(SymmetricTransport):
    """Shares plain memory of the GPU with the other end."""

    shared: tuple[Tensor, Tensor]

    def _meet(self, nbytes: int, edge: Edge, other: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return *_parts(self.shared[1 - other], nbytes), *_parts(self.shared[other], nbytes)


class Ends:
    """A sender's and a receiver's graph of one edge, on streams of their own."""

    def __init__(self) -> None:
        device, faults = torch.device("cuda", 0), NoFaults()
        edge: Any = Edge(group=None, captured=None, peer=1)
        memory = [
            torch.zeros(aligned(ROWS) + ALIGNMENT, dtype=torch.uint8, device=device) for _ in "ab"
        ]
        self.first = OneProcess(device, None, edge, faults)  # type: ignore[arg-type]  # stands in
        self.last = OneProcess(device, edge, None, faults)  # type: ignore[arg-type]  # stands in
        self.first.shared = self.last.shared = (memory[0], memory[1])
        _, outgoing = self.first.blocks(0, ROWS)
        landing, _ = self.last.blocks(ROWS, 0)
        assert outgoing is not None and landing is not None
        self.first.warm_up()
        self.last.warm_up()
        self.given, self.taken = (torch.zeros(ROWS, dtype=torch.uint8, device=device) for _ in "ab")
        block, here = outgoing[:ROWS], landing[:ROWS]
        self.send = self._graph(lambda: self._stage(self.first, None, block))
        self.receive = self._graph(lambda: self._stage(self.last, here, None))
        self.step(0)  # kernels that are loaded while another waits for them would wait as well

    def _stage(self, end: OneProcess, incoming: Tensor | None, outgoing: Tensor | None) -> None:
        end.arrive(incoming)
        if outgoing is not None:
            outgoing.copy_(self.given)
        if incoming is not None:
            self.taken.copy_(incoming)
            incoming.zero_()  # what comes next must be written anew
        end.depart(incoming, outgoing)

    def _graph(self, body: Callable[[], None]) -> Callable[[], None]:
        stream: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            body()

        def replay() -> None:
            stream.wait_stream(torch.cuda.default_stream())
            with torch.cuda.stream(stream):
                graph.replay()

        return replay

    def step(self, value: int) -> None:
        self.given.fill_(value)
        self.send()
        self.receive()
        came = self.last.replayed(value)
        assert came is not None
        came.confirm()
        torch.cuda.synchronize()
        assert self.taken.tolist() == [value] * ROWS


@pytest.mark.timeout(60)
def test_blocks_come_one_after_the_other() -> None:
    ends = Ends()
    for value in range(1, 30):
        ends.step(value)


@pytest.mark.timeout(60)
def test_a_step_has_come_with_its_own_block_and_not_before() -> None:
    """After replays that nobody told of, too: those of a calibration."""
    ends = Ends()
    ends.step(1)
    for _ in range(5):
        ends.send()
        ends.receive()
    ends.last.recount()
    ends.receive()
    came: Any = ends.last.replayed(2)
    assert not came.done()
    ends.given.fill_(7)
    ends.send()
    came.confirm()
    torch.cuda.synchronize()
    assert ends.taken.tolist() == [7] * ROWS


@pytest.mark.timeout(60)
def test_who_breaks_off_waits_no_longer_and_has_received_nothing() -> None:
    ends = Ends()
    ends.receive()
    came: Any = ends.last.replayed(1)
    ends.last.break_off()
    torch.cuda.synchronize()
    assert not came.done()
