"""Graphs whose library workspaces others throw away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.backends.cuda import CudaBackend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
# few rows and a long inner dimension: cuBLAS splits it and adds up in its workspace
SHAPES = ((16, 16384, 64), (64, 14336, 4096), (192, 8192, 128))


def products(backend: CudaBackend) -> list[tuple[Tensor, Tensor, Tensor, Callable[[], None]]]:
    """Factors, the result's buffer, and the replay that fills it."""
    made = []
    for rows, inner, columns in SHAPES:
        left = torch.randn(rows, inner, device=backend.device, dtype=torch.bfloat16)
        right = torch.randn(inner, columns, device=backend.device, dtype=torch.bfloat16)
        out = torch.zeros(rows, columns, device=backend.device, dtype=torch.bfloat16)

        def body(left: Tensor = left, right: Tensor = right, out: Tensor = out) -> None:
            out.copy_(left @ right)

        backend.warm_up(body)
        made.append((left, right, out, backend.capture(body).replay))
    return made


def forget_workspaces(backend: CudaBackend) -> None:
    """What torch's graph trees do whenever they warm up or record."""
    torch._C._cuda_clearCublasWorkspaces()


def close_another_graph(backend: CudaBackend) -> None:
    """Newer releases of torch free the workspace of a stream with any graph captured there."""
    one = torch.ones(64, 64, device=backend.device)

    def body() -> None:
        torch.mm(one, one)

    backend.capture(body).close()


@pytest.mark.parametrize("harm", [forget_workspaces, close_another_graph])
def test_a_graph_never_writes_into_memory_of_others(harm: Callable[[CudaBackend], None]) -> None:
    backend = CudaBackend()
    made = products(backend)
    harm(backend)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with torch.cuda.stream(backend._stream.stream):  # whose freed blocks these would be
        others = [
            torch.zeros(size << 20, dtype=torch.uint8, device=backend.device)
            for size in (1, 8, 31, 32, 33, 64) * 4
        ]
    torch.cuda.synchronize()
    for _ in range(3):
        for left, right, out, replay in made:
            out.zero_()
            replay()
            torch.testing.assert_close(
                out.float(), (left.float() @ right.float()), atol=2, rtol=2e-2
            )
    torch.cuda.synchronize()
    assert not any(block.any() for block in others)
    backend.close()


def test_no_two_backends_have_a_stream_in_common() -> None:
    """However many there are: torch hands out 32 streams a device and begins anew."""
    backends = [CudaBackend() for _ in range(40)]
    streams = {backend._stream.stream.cuda_stream for backend in backends}
    handed_out = {torch.cuda.Stream().cuda_stream for _ in range(64)}  # type: ignore[no-untyped-call]  # torch's
    assert len(streams) == 40
    assert not streams & handed_out


def test_a_stream_is_lent_again_when_its_graphs_are_gone() -> None:
    def body() -> None:
        torch.ones(4, device="cuda").add_(1)

    backend = CudaBackend()
    stream = backend._stream.stream.cuda_stream
    graph = backend.capture(body)
    del backend
    kept = [CudaBackend() for _ in range(3)]
    assert stream not in {other._stream.stream.cuda_stream for other in kept}
    del graph
    assert CudaBackend()._stream.stream.cuda_stream == stream


def test_a_graph_of_a_stream_that_was_lent_before_keeps_its_workspace() -> None:
    for _ in range(2):  # the second has the stream and the workspace of the first
        backend = CudaBackend()
        made = products(backend)
        forget_workspaces(backend)
        torch.cuda.empty_cache()
        others = [
            torch.zeros(size << 20, dtype=torch.uint8, device=backend.device)
            for size in (8, 32, 33) * 4
        ]
        for left, right, out, replay in made:
            replay()
            torch.testing.assert_close(
                out.float(), (left.float() @ right.float()), atol=2, rtol=2e-2
            )
        assert not any(block.any() for block in others)
        del backend, made, replay


def test_a_workspace_that_went_between_warm_up_and_capture_is_made_where_it_was() -> None:
    """Newer torch frees it at each reset of a graph of the stream: amid a ladder, then."""
    backend = CudaBackend()
    left = torch.randn(64, 14336, device=backend.device, dtype=torch.bfloat16)
    right = torch.randn(14336, 4096, device=backend.device, dtype=torch.bfloat16)
    out = torch.zeros(64, 4096, device=backend.device, dtype=torch.bfloat16)

    def body() -> None:
        torch.mm(left, right, out=out)

    backend.warm_up(body)
    graphs, used = [], []
    for _ in range(3):
        graphs.append(backend.capture(body))
        used.append(used_in(backend._stream._workspace))
        forget_workspaces(backend)
    assert used[0]
    assert used == used[:1] * 3
    assert not used_in(backend._stream._workspace)
    backend.close()


def used_in(pool: torch.cuda.MemPool) -> list[tuple[int, int]]:
    """Where tensors lie in the memory of a pool, and their bytes."""
    return [
        (block["address"], block["size"])
        for segment in torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]  # torch's
        if tuple(segment["segment_pool_id"]) == tuple(pool.id)
        for block in segment["blocks"]
        if block["state"].startswith("active")
    ]
