"""Memsets in captured graphs: replaced by kernels that leave the same bytes."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.backends.cuda import CudaBackend, CudaGraph
from ppcgc.runtime.backends.memset_nodes import nodes_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class AsCaptured(CudaBackend):
    replaces_memsets = False


def kinds(graph: CudaGraph) -> Counter[str]:
    """How many nodes of each kind a captured graph has."""
    assert graph._graph is not None
    nodes = nodes_of(graph._graph)
    assert nodes is not None, "cuda.bindings is not there"
    return Counter(map(nodes.kind, nodes.all()))


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Also of what is no number."""
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def driver_memset(name: str, rows: Tensor, *given: int) -> None:
    """A memset of the driver on the current stream, as libraries call it."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    call = getattr(ctypes.CDLL("libcuda.so.1"), name)
    assert call(ctypes.c_uint64(rows.data_ptr()), *map(ctypes.c_size_t, given), stream) == 0


def zeroed(rows: Tensor) -> None:
    driver_memset("cuMemsetD8Async", rows, 0, rows.nbytes)


def bytes_set(rows: Tensor) -> None:
    driver_memset("cuMemsetD8Async", rows, 0x5A, rows.nbytes - 3)


def halves_set(rows: Tensor) -> None:
    driver_memset("cuMemsetD16Async", rows[2:], 0x8001, 11)


def words_set(rows: Tensor) -> None:
    driver_memset("cuMemsetD32Async", rows, 0xFFFFFFFF, rows.nbytes // 4 - 1)


def block_set(rows: Tensor) -> None:
    """Two dimensions: three rows of five bytes, sixteen apart. Stays a memset."""
    driver_memset("cuMemsetD2D8Async", rows, 16, 0x11, 5, 3)


@pytest.mark.parametrize("fill", [zeroed, bytes_set, halves_set, words_set, block_set])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.int64])
def test_a_replay_leaves_the_bytes_of_the_memset(
    fill: Callable[[Tensor], None], dtype: torch.dtype
) -> None:
    backend = CudaBackend()
    rows = torch.arange(1, 65, device=backend.device).to(dtype)
    given = rows.clone()
    made = torch.zeros_like(rows)

    def body() -> None:
        rows.add_(1)
        fill(rows)
        torch.add(rows, rows, out=made)

    wanted = given + 1
    fill(wanted)
    plain = AsCaptured()
    assert kinds(plain.capture(body)) == {"KERNEL": 2, "MEMSET": 1}
    graph = backend.capture(body)
    for _ in range(2):
        rows.copy_(given)
        graph.replay()
        assert same_bytes(rows, wanted)
        assert same_bytes(made, wanted + wanted)
    assert kinds(graph)["MEMSET"] == (fill is block_set)
    assert graph.steps == 3
    backend.close()
    plain.close()


def test_a_memset_beside_other_work_stays_between_its_neighbours() -> None:
    """Two branches: one resets what the other's product is added to, and then both meet."""
    total, other = (torch.ones(1 << 20, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's

    def body() -> None:
        here = torch.cuda.current_stream()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            zeroed(total)  # the first of its branch
            total.add_(3)
        other.mul_(2)
        here.wait_stream(side)
        total.add_(other)

    plain, backend = AsCaptured(), CudaBackend()
    assert kinds(plain.capture(body)) == {"KERNEL": 3, "MEMSET": 1}
    graph = backend.capture(body)
    assert kinds(graph) == {"KERNEL": 4}
    for turn in range(1, 5):
        graph.replay()
        assert total.eq(3 + 2**turn).all()
    backend.close()


def test_memsets_alone_first_and_last() -> None:
    """Nothing before them, nothing behind, and two in a row."""
    backend = CudaBackend()
    rows = torch.ones(1 << 10, dtype=torch.int32, device="cuda")

    def alone() -> None:
        zeroed(rows)

    def first_and_last() -> None:
        words_set(rows)
        zeroed(rows[:8])
        rows.add_(5)
        zeroed(rows[4:6])

    graphs = [backend.capture(body) for body in (alone, first_and_last)]
    assert [kinds(graph) for graph in graphs] == [{"KERNEL": 1}, {"KERNEL": 4}]
    for _ in range(2):
        rows.fill_(7)
        graphs[0].replay()
        assert not rows.any()
        rows.fill_(7)
        graphs[1].replay()
        assert rows[:10].tolist() == [5, 5, 5, 5, 0, 0, 5, 5, 4, 4]
        assert rows[8:-1].eq(4).all()
        assert rows[-1].item() == 12  # which no memset reaches
    backend.close()


def test_products_that_reset_counters_are_chains_of_kernels() -> None:
    """cuBLAS resets counters by memsets for some of these sizes; which, is its own business."""
    backend, plain = CudaBackend(), AsCaptured()
    memsets = 0
    weight = torch.randn(4096, 28672, device=backend.device, dtype=torch.bfloat16) / 64
    for rows in (64, 512, 1024, 2048):
        left = torch.randn(rows, 4096, device=backend.device, dtype=torch.bfloat16)
        made = torch.empty(rows, 28672, device=backend.device, dtype=torch.bfloat16)

        def body(left: Tensor = left, made: Tensor = made) -> None:
            torch.mm(left, weight, out=made)

        plain.warm_up(body)
        memsets += kinds(plain.capture(body))["MEMSET"]
        backend.warm_up(body)
        wanted = made.clone()
        graph = backend.capture(body)
        for _ in range(3):
            made.zero_()
            graph.replay()
            assert torch.equal(made, wanted)
        assert not kinds(graph)["MEMSET"]
    backend.close()
    plain.close()
    if not memsets:
        pytest.skip("cuBLAS has no memsets for these sizes here")
