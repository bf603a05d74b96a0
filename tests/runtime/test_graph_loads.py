"""Loads that graphs take off the host by themselves: entries of the ring, moves of device rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from ring_checks import (
    Kernels,
    RecordedGraph,
    block_of,
    by_its_number,
    counts,
    with_kernels,
)
from test_row_moves import needs_gpu
from torch import Tensor

from ppcgc.runtime.backends.cuda import CudaBackend
from ppcgc.runtime.errors import AddressError, SourceError
from ppcgc.runtime.graph_ring import ENTRIES
from ppcgc.runtime.host_block import BucketHost
from ppcgc.runtime.row_moves import IN_GRAPH, NOW


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    return with_kernels(monkeypatch)


def load(host: BucketHost, value: int, *, in_graph: bool) -> None:
    host.open(in_graph=in_graph)
    host.begin()[0].set_all(value)
    host.push()


def seen(host: BucketHost) -> list[int]:
    return [int(value) for value in host.device_views[0]]


# ---------------------------------------------------------------- entries


def test_a_load_reaches_the_device_with_the_replay_and_not_before(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    load(host, 5, in_graph=True)
    assert seen(host) == [0, 0, 0]
    host.replay(graph)
    assert seen(host) == [5, 5, 5]


def test_a_begun_step_is_on_the_device_before_its_replay(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    load(host, 5, in_graph=False)
    assert seen(host) == [5, 5, 5]
    host.device_views[0].fill_(6)  # what the caller writes in between stays
    host.replay(graph)
    assert seen(host) == [6, 6, 6]


def test_what_was_published_for_no_replay_is_taken_by_none(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    load(host, 5, in_graph=True)  # and its step is given up
    load(host, 6, in_graph=False)
    host.replay(graph)
    assert seen(host) == [6, 6, 6]
    load(host, 7, in_graph=True)  # given up for a recapture, which warms up by running the body
    load(host, 8, in_graph=False)
    graph = kernels.graph(host, [])
    assert seen(host) == [8, 8, 8]
    load(host, 9, in_graph=True)
    host.replay(graph)
    assert seen(host) == [9, 9, 9]


def test_a_load_that_fails_leaves_the_next_replay_its_own(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    host.open(in_graph=True)
    with pytest.raises(SourceError, match="slot n"):
        host.begin()[0].put(torch.ones(2, dtype=torch.int32), 3)
    load(host, 4, in_graph=True)
    host.replay(graph)
    assert seen(host) == [4, 4, 4]


def _copy(into: Tensor, source: Tensor) -> None:
    into.copy_(source)


def _forward(results: list[list[int]], host: BucketHost) -> None:
    results.append(seen(host))


@pytest.mark.parametrize("seed", range(4))
def test_replays_far_behind_the_host_each_take_their_own_load(
    kernels: Kernels, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two buckets, both ways of loading, loads given up, a device that lags as it likes.

    A copy by a call stands in the stream as a replay does: the device does both in order.
    """
    block, order = block_of(3, 5), random.Random(seed)
    hosts = [BucketHost(block, counts(rows)) for rows in (3, 5)]
    graphs = [kernels.graph(host, []) for host in hosts]
    waiting: list[Callable[[], None]] = []
    results: list[list[int]] = []
    for graph, host in zip(graphs, hosts, strict=True):
        graph.waiting = waiting
        graph.kernels.append(partial(_forward, results, host))

    def copy(device_bytes: Tensor, host_bytes: Tensor) -> None:
        kept = host_bytes.clone()  # its ring has events, see test_arena
        waiting.append(partial(_copy, device_bytes, kept))

    def idle() -> bool:  # asked while the ring is full
        waiting.pop(0)()
        return False

    monkeypatch.setattr(block, "copy", copy)
    monkeypatch.setattr(block.ring, "_device_is_idle", idle)
    wanted: list[list[int]] = []
    for step in range(1, 400):
        at, in_graph = order.randrange(2), order.random() < 0.7
        load(hosts[at], step, in_graph=in_graph)
        if order.random() < 0.2:
            continue  # given up
        hosts[at].replay(graphs[at])
        wanted.append([step] * (3, 5)[at])
        while waiting and order.random() < 0.1:
            waiting.pop(0)()
    for act in waiting:
        act()
    assert results == wanted


def test_a_block_is_made_on_its_own_devices_whatever_the_default_is(kernels: Kernels) -> None:
    with torch.device("meta"):
        host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    load(host, 5, in_graph=True)
    host.replay(graph)
    assert seen(host) == [5, 5, 5]


def test_a_full_ring_waits_until_its_oldest_entry_is_taken(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    waiting: list[Callable[[], None]] = []
    graph.waiting = waiting
    for step in range(ENTRIES):
        load(host, step, in_graph=True)
        host.replay(graph)
    looks = []

    def query() -> bool:
        looks.append(len(waiting))
        if len(looks) == 3:
            waiting.pop(0)()
        return False

    ring: Any = host._ring
    monkeypatch.setattr(ring, "_device_is_idle", query)
    load(host, 100, in_graph=True)
    assert looks == [ENTRIES] * 3
    host.replay(graph)
    for act in waiting:
        act()
    assert seen(host) == [100, 100, 100]


def test_loads_that_no_replay_takes_are_not_waited_for(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = RecordedGraph([])  # of something else
    for step in range(ENTRIES):
        load(host, step, in_graph=True)
        host.replay(graph)
    with pytest.raises(AddressError, match="8 replays were launched and are done, 0 of them took"):
        load(host, 9, in_graph=True)


@pytest.mark.parametrize("launched", [True, False])
def test_an_interrupt_amid_a_replay_leaves_the_next_step_its_own(
    kernels: Kernels, launched: bool
) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])

    class Interrupted(RecordedGraph):
        def replay(self) -> None:
            if launched:
                super().replay()
            raise KeyboardInterrupt

    load(host, 1, in_graph=True)
    with pytest.raises(KeyboardInterrupt):
        host.replay(Interrupted(graph.kernels))
    for step in range(2, 20):
        load(host, step, in_graph=True)
        host.replay(graph)
        assert seen(host) == [step] * 3


def test_a_replay_past_the_runner_that_takes_a_load_is_found(kernels: Kernels) -> None:
    host = BucketHost(block_of(3), counts(3))
    graph = kernels.graph(host, [])
    load(host, 1, in_graph=True)
    graph.replay()
    with pytest.raises(AddressError, match="0 replays were launched and 1 loads are taken"):
        load(host, 2, in_graph=True)


# ---------------------------------------------------------------- moves


def with_a_move(kernels: Kernels) -> tuple[BucketHost, RecordedGraph, Tensor, Tensor]:
    """A bucket whose graph begins with a move; its slot, and where the boundary is received."""
    host = BucketHost(block_of(3), counts(3))
    slot, boundary = torch.full((8, 2), 7.0), torch.full((8, 2), 7.0)
    host.open()
    host.begin()
    host.move_rows(slot, torch.full((8, 2), 5.0), 8, "x", 0)
    host.push()
    graph = kernels.graph(host, [boundary])
    assert set(kernels.columns[1:]) == {IN_GRAPH}
    assert slot.tolist() == [[5.0, 5.0]] * 8
    return host, graph, slot, boundary


def test_a_whole_step_leaves_its_moves_to_the_replay(kernels: Kernels) -> None:
    host, graph, slot, boundary = with_a_move(kernels)
    host.open(in_graph=True)
    host.receive_rows(boundary, torch.full((3, 2), 2.0), (3, 2), "boundary.h")
    host.begin()
    host.move_rows(slot, torch.ones(3, 2), 3, "x", 0)
    host.push()
    assert slot.tolist() == [[5.0, 5.0]] * 8, "nothing moves before the replay"
    host.replay(graph)
    assert slot.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 5
    assert boundary.tolist() == [[2.0, 2.0]] * 3 + [[7.0, 7.0]] * 5, "the graph resets the rest"


def test_a_begun_step_moves_at_once_and_its_replay_not_again(kernels: Kernels) -> None:
    host, graph, slot, _ = with_a_move(kernels)
    host.open()
    host.begin()
    host.move_rows(slot, torch.ones(3, 2), 3, "x", 0)
    host.push()
    assert slot.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]] * 5
    slot.fill_(9)  # what the caller writes in between stays
    host.replay(graph)
    assert slot.tolist() == [[9.0, 9.0]] * 8


def test_a_step_without_moves_has_none_of_an_earlier_one(kernels: Kernels) -> None:
    host, graph, slot, _ = with_a_move(kernels)
    load(host, 1, in_graph=True)
    slot.fill_(9)
    host.replay(graph)
    assert slot.tolist() == [[9.0, 9.0]] * 8


def test_moves_that_the_graph_has_no_programs_for_are_done_at_once(kernels: Kernels) -> None:
    host, graph, slot, _ = with_a_move(kernels)
    others = [torch.zeros(2) for _ in range(2)]
    host.open(in_graph=True)
    host.begin()[0].set_all(3)
    host.move_rows(slot, torch.ones(1, 2), 1, "x", 0)
    for at, other in enumerate(others):
        host.move_rows(other, torch.ones(1), 1, f"other {at}", 0)
    host.push()
    assert kernels.columns[-1] == NOW
    assert [other.tolist() for other in others] == [[1.0, 0.0]] * 2
    assert seen(host) == [3, 3, 3], "the block goes where its moves go"
    host.replay(graph)
    assert seen(host) == [3, 3, 3]


def test_a_step_that_failed_leaves_no_move_to_the_next(kernels: Kernels) -> None:
    host, graph, slot, boundary = with_a_move(kernels)
    host.open(in_graph=True)
    host.receive_rows(boundary, torch.full((3, 2), 2.0), (3, 2), "boundary.h")
    host.begin()
    with pytest.raises(SourceError, match="slot x"):
        host.move_rows(slot, torch.ones(2, 2), 3, "x", 0)
    load(host, 1, in_graph=True)
    host.replay(graph)
    assert boundary.tolist() == [[7.0, 7.0]] * 8
    assert slot.tolist() == [[5.0, 5.0]] * 8


@pytest.mark.parametrize(("rows", "programs"), [(1, 1), (2048, 2), (100_000, 97), (2**21, 256)])
def test_a_large_boundary_is_shared_by_many_programs(
    kernels: Kernels, rows: int, programs: int
) -> None:
    host = BucketHost(block_of(3), counts(3))
    host.open()
    host.begin()
    host.move_rows(torch.zeros(8), torch.ones(8), 8, "x", 0)
    host.push()
    host.load_in_graph([torch.empty(rows, 4, dtype=torch.bfloat16)])
    assert kernels.programs == [1, programs], "by blocks of 1,024 words of 8 bytes"


# ---------------------------------------------------------------- the kernel


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("words", [0, 1, 511, 4096, 4097, 20_000])
def test_the_kernel_takes_what_the_words_say(words: int) -> None:
    from ppcgc.runtime.graph_ring import open_reader

    device = torch.device("cuda", torch.cuda.current_device())
    kernel = open_reader(device)
    assert kernel is not None, "this torch has no Triton"
    memory = torch.randint(0, 100, (4, 8 + 20_480), dtype=torch.int64)
    for number, done in ((7, 6), (7, 5), (0, 0)):  # it is this replay's, another's, nobody's
        memory[done % 4, :2] = torch.tensor([number, words])
        states = []
        for on_gpu in (False, True):
            put = torch.Tensor.cuda if on_gpu else torch.Tensor.clone
            ring, taken = memory, torch.zeros(1, dtype=torch.int64)
            into = put(torch.full((20_480,), 9))
            count = put(torch.tensor([done]))
            if on_gpu:
                ring, taken = ring.pin_memory(), taken.pin_memory()
            (kernel if on_gpu else by_its_number)(ring, into, count, taken)
            torch.cuda.synchronize()
            states.append((into.cpu(), count.cpu(), taken))
        for on_cpu, on_device in zip(*states, strict=True):
            assert torch.equal(on_cpu, on_device)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("seed", range(3))
def test_replays_of_a_gpu_far_behind_each_take_their_own_load(seed: int) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    order, sizes = random.Random(seed), (3, 5000)
    block = block_of(*sizes, device=device)
    hosts = [BucketHost(block, counts(rows)) for rows in sizes]
    graphs = [CudaBackend(device) for _ in hosts]
    replays = []
    for backend, host in zip(graphs, hosts, strict=True):
        body = partial(host.load_in_graph, [])
        backend.warm_up(body)
        replays.append(backend.capture(body))
    results, wanted = [], []
    for step in range(1, 300):
        if order.random() < 0.1:
            torch.cuda._sleep(4_000_000)  # type: ignore[no-untyped-call]  # 2 ms: the ring fills
        at = order.randrange(2)
        load(hosts[at], step, in_graph=order.random() < 0.7)
        if order.random() < 0.2:
            continue  # given up
        hosts[at].replay(replays[at])
        results.append(hosts[at].device_views[0].clone())
        wanted.append([step] * sizes[at])
    assert [made.tolist() for made in results] == wanted
    for backend in graphs:
        backend.close()
