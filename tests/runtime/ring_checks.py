"""What the kernels at the head of a graph do, word by word, on the CPU; and graphs of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_row_moves import CPU, by_the_table
from torch import Tensor

from ppcgc.runtime.host_block import BucketHost, HostBlock, HostSlot, offsets_of


def by_its_number(ring: Tensor, into: Tensor, count: Tensor, taken: Tensor) -> None:
    """What ``ring_kernel`` does, off the memory alone."""
    done = int(count[0])
    number, size, *_ = words = ring[done % len(ring)].tolist()
    if number == done + 1:
        into[:size] = torch.tensor(words[8 : 8 + size], dtype=torch.int64)
        count.fill_(done + 1)
        taken.fill_(done + 1)


class Kernels:
    """Stand-ins for both kernels: they do what those do, and remember how they were launched."""

    def __init__(self) -> None:
        self.columns: list[int] = []  # of the table, in the order of the moves' launches
        self.programs: list[int] = []
        self.recorded: list[Callable[[], None]] = []

    def move(self, table: Tensor, column: int, moves: int, programs: int) -> None:
        self.columns.append(column)
        self.programs.append(programs)
        self._do(lambda: by_the_table(table, column, moves, programs))

    def take(self, ring: Tensor, into: Tensor, count: Tensor, taken: Tensor) -> None:
        self._do(lambda: by_its_number(ring, into, count, taken))

    def _do(self, act: Callable[[], None]) -> None:
        self.recorded.append(act)
        act()

    def graph(self, host: BucketHost, others: list[Tensor]) -> RecordedGraph:
        """The head of the bucket's graph, run once to warm up and once to record it."""
        host.load_in_graph(others)
        self.recorded.clear()
        host.load_in_graph(others)
        return RecordedGraph(list(self.recorded))


class RecordedGraph:
    """A graph of these kernels. ``behind`` replays are launched and wait for the device."""

    steps = None

    def __init__(self, kernels: list[Callable[[], None]]) -> None:
        self.kernels = kernels
        self.waiting: list[Callable[[], None]] | None = None  # shared by graphs of one device

    def replay(self) -> None:
        if self.waiting is None:
            self.run()
        else:
            self.waiting.append(self.run)

    def run(self) -> None:
        for kernel in self.kernels:
            kernel()

    def close(self) -> None:
        self.kernels.clear()


def with_kernels(patch: pytest.MonkeyPatch) -> Kernels:
    """Blocks that are made from now on are loaded by stand-ins for the kernels."""
    made = Kernels()
    patch.setattr("ppcgc.runtime.host_block.open_mover", lambda device: made.move)
    patch.setattr("ppcgc.runtime.host_block.open_reader", lambda device: made.take)
    return made


def counts(rows: int) -> tuple[HostSlot, ...]:
    """A layout of one slot of ``rows`` integers."""
    return (HostSlot(name="n", shape=(rows,), dtype=torch.int32),)


def block_of(*rows: int, device: torch.device = CPU) -> HostBlock:
    """A block that layouts of so many integers fit into."""
    return HostBlock(device, max(offsets_of(counts(most))[1] for most in rows))
