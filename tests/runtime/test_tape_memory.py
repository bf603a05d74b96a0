"""The pool, the memory that is not the graph's own, and what the model keeps."""

from __future__ import annotations

import gc
import resource
import weakref
from functools import partial
from pathlib import Path

import pytest
import torch
from tape_checks import capture_results, same_bits
from torch import Tensor

from ppcgc.runtime.backends.base import Backend
from ppcgc.runtime.backends.cpu import CpuBackend, CpuGraph
from ppcgc.runtime.errors import NotCapturedError


def _chain(x: Tensor, links: int = 6) -> Tensor:
    """Each link needs its input and its output, and nothing older."""
    for _ in range(links):
        x = x.sin()
    return x


def _chained(x: Tensor) -> tuple[Tensor]:
    return (_chain(x),)


def test_it_is_a_backend() -> None:
    backend: Backend = CpuBackend()
    assert (backend.name, backend.device) == ("cpu", torch.device("cpu"))
    assert backend.capture(lambda: None).steps == 0


def test_a_chain_needs_two_buffers_whatever_its_length() -> None:
    x = torch.randn(256)  # 1024 bytes
    graph, _ = capture_results(CpuBackend(), lambda: (_chain(x, 20),))
    assert graph.pool_bytes == 2 * 1024


def test_a_buffer_that_an_operation_resized_has_its_final_size_in_the_pool() -> None:
    x = torch.randn(256)

    def compute() -> tuple[Tensor]:
        doubled = torch.empty(0)
        torch.add(x, x, out=doubled)
        return (doubled.sin(),)

    backend = CpuBackend()
    graph, _ = capture_results(backend, compute)
    assert graph.pool_bytes == backend.pool_bytes() == 2 * 1024


@pytest.mark.parametrize("sizes", [(16, 64, 256, 1024), (1024, 256, 64, 16)])
def test_the_pool_is_the_largest_graph_and_not_the_sum(sizes: tuple[int, ...]) -> None:
    backend = CpuBackend()
    x = torch.randn(1024)
    captured: list[tuple[CpuGraph, Tensor, int]] = []
    for size in sizes:
        graph, (out,) = capture_results(backend, partial(_chained, x[:size]))
        captured.append((graph, out, size))
    assert backend.pool_bytes() == 2 * 1024 * 4
    assert backend.pool_bytes() == max(graph.pool_bytes for graph, _, _ in captured)
    x.copy_(torch.randn(1024))
    for graph, out, size in [*captured, *captured[::-1], *captured]:
        out.zero_()
        backend.poison_pool()
        graph.replay()
        assert same_bits(out, _chain(x[:size]))


def test_graphs_replay_in_any_order() -> None:
    backend = CpuBackend()
    x = torch.randn(8)
    a, (out_a,) = capture_results(backend, lambda: (_chain(x),))
    b, (out_b,) = capture_results(backend, lambda: ((x * 3).exp().sum(0, keepdim=True) + x,))
    for graph, out in ((a, out_a), (b, out_b), (a, out_a)):
        x.copy_(torch.randn(8))
        graph.replay()
        expected = _chain(x) if graph is a else (x * 3).exp().sum(0, keepdim=True) + x
        assert same_bits(out, expected)


def test_closing_gives_the_pool_back() -> None:
    backend = CpuBackend()
    x = torch.randn(256)
    small, (out,) = capture_results(backend, lambda: (_chain(x[:64]),))
    large, _ = capture_results(backend, lambda: (_chain(x),))
    assert backend.pool_bytes() == 2048
    large.close()
    large.close()
    assert backend.pool_bytes() == 512
    small.replay()
    assert same_bits(out, _chain(x[:64]))
    with pytest.raises(NotCapturedError, match="closed"):
        large.replay()
    backend.close()
    backend.close()
    assert backend.pool_bytes() == 0
    with pytest.raises(NotCapturedError):
        small.replay()
    with pytest.raises(NotCapturedError):
        backend.capture(lambda: None)


def test_a_closed_graph_lets_go_of_what_it_read() -> None:
    x = torch.randn(8)
    watched = weakref.ref(x.untyped_storage())
    graph, _ = capture_results(CpuBackend(), partial(_chained, x))
    del x
    gc.collect()
    assert watched() is not None  # the graph reads that memory
    graph.close()
    gc.collect()
    assert watched() is None


def test_intermediates_are_not_kept() -> None:
    backend = CpuBackend()
    x = torch.randn(1 << 20)  # 4 MiB, 40 links: 160 MiB if each were kept
    before = _resident_bytes()
    graphs = [capture_results(backend, lambda: (_chain(x, 40),)) for _ in range(3)]
    assert len(graphs) == 3
    # three output buffers, the pool's two, and slack for the allocator
    assert _resident_bytes() - before < 100 << 20


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_externals_tell_ranges_of_one_storage_apart() -> None:
    arena = torch.zeros(64, dtype=torch.uint8)
    ids = arena[:16].view(torch.int64)
    scale = arena[16:32].view(torch.float32)
    weight = torch.nn.Parameter(torch.ones(2, 4))
    pool = torch.zeros(3, 4)

    def body() -> None:
        pool.index_copy_(0, ids, weight)  # first use of three
        pool.mul_(scale)

    with torch.no_grad():
        ids.copy_(torch.tensor([0, 2]))
    graph = CpuBackend().capture(body)
    found = {(use.address, use.start, use.end, use.written): use for use in graph.externals}
    base = arena.data_ptr()
    assert set(found) == {
        (base, 0, 16, False),
        (base + 16, 16, 32, False),
        (weight.data_ptr(), 0, 32, False),
        (pool.data_ptr(), 0, 48, True),
    }
    first = found[pool.data_ptr(), 0, 48, True]
    assert (first.shape, first.dtype, first.op) == (
        (3, 4),
        torch.float32,
        "aten.index_copy_.default",
    )
    assert first.line.source.endswith("# first use of three")
    assert first.line.function == "body"


def test_a_host_constant_is_reported() -> None:
    x = torch.ones(2)
    graph, _ = capture_results(CpuBackend(), lambda: (x * torch.tensor([2.0, 3.0]),))
    assert "aten.lift_fresh.default" in {use.op for use in graph.externals}


def test_a_number_frozen_in_a_list_is_no_constant_of_the_pool() -> None:
    values = [1.0, 2.0]
    x = torch.zeros(2)
    graph, (out,) = capture_results(CpuBackend(), lambda: (x + torch.tensor(values),))
    values[0] = 99.0
    graph.replay()
    assert out.tolist() == [1.0, 2.0]  # as on a GPU: the values of the capture


def test_what_the_model_keeps_is_reported_and_stays_whole() -> None:
    backend = CpuBackend()
    x = torch.ones(4)
    kept: list[Tensor] = []
    graph = backend.capture(lambda: kept.append(x * 2))  # the line that keeps
    (escaped,) = graph.escaped
    assert (escaped.nbytes, escaped.shape, escaped.op) == (16, (4,), "aten.mul.Tensor")
    assert "# the line that keeps" in escaped.line.source
    address = kept[0].data_ptr()
    capture_results(backend, lambda: (_chain(x),))[0].replay()
    backend.poison_pool()
    assert kept[0].tolist() == [2.0] * 4
    x.fill_(5)
    graph.replay()
    assert kept[0].tolist() == [10.0] * 4
    assert kept[0].data_ptr() == address
    assert graph.pool_bytes == 0


def test_nothing_escapes_from_an_honest_body() -> None:
    x = torch.ones(4)
    graph, _ = capture_results(CpuBackend(), lambda: (_chain(x),))
    assert graph.escaped == ()


def test_a_cycle_of_garbage_is_no_escape() -> None:
    x = torch.ones(4)

    class Node:
        def __init__(self) -> None:
            self.me = self
            self.value = x * 2

    gc.disable()
    try:
        graph = CpuBackend().capture(lambda: Node())
    finally:
        gc.enable()
    assert graph.escaped == ()


def test_a_table_cached_by_an_earlier_capture_is_followed() -> None:
    backend = CpuBackend()
    table: list[Tensor] = []
    x = torch.ones(3)

    def compute() -> tuple[Tensor]:
        if not table:
            table.append(torch.arange(3.0) * 2)
        return (x + table[0],)

    out = torch.zeros(3)
    first = backend.capture(lambda: out.copy_(compute()[0]))
    second = backend.capture(lambda: out.copy_(compute()[0]))
    assert [escaped.op for escaped in first.escaped] == ["aten.mul.Tensor"]
    assert second.escaped == ()
    backend.poison_pool()
    for graph in (second, first, second):
        out.zero_()
        graph.replay()
        assert out.tolist() == [1.0, 3.0, 5.0]


def test_memory_rebound_after_capture_is_not_followed() -> None:
    holder = {"x": torch.ones(2)}
    graph, (out,) = capture_results(CpuBackend(), lambda: (holder["x"] + 1,))
    holder["x"] = torch.full((2,), 50.0)
    graph.replay()
    assert out.tolist() == [2.0, 2.0]


def test_the_listing_has_a_line_for_each_step() -> None:
    x = torch.ones(4, 2)
    graph, _ = capture_results(CpuBackend(), lambda: (x @ x.t(),))  # the product
    listing = graph.listing()
    assert len(listing) == graph.steps == 2
    assert "aten.mm.default (4, 2), (2, 4) -> (4, 4)" in listing[0]
    assert listing[0].endswith("# the product")
    graph.close()
    assert graph.listing() == []


def test_the_model_is_not_run_again() -> None:
    runs: list[int] = []
    x = torch.ones(2)

    def compute() -> tuple[Tensor]:
        runs.append(1)
        return (x + len(runs),)

    graph, (out,) = capture_results(CpuBackend(), compute)
    seen = len(runs)
    graph.replay()
    graph.replay()
    assert len(runs) == seen
    assert out.tolist() == [1.0 + seen] * 2
