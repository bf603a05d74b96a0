"""Captures that break off: what they leave behind, and the process that goes on."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.backends.cuda import CudaBackend
from ppcgc.runtime.errors import CaptureError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def reads_on_the_host(rows: Tensor) -> None:
    (rows * 2).sum().item()


def raises(rows: Tensor) -> None:
    made = rows * 2
    raise KeyError(f"with {made.shape} in its frame")


def forks_and_never_joins(rows: Tensor) -> None:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        rows * 2


BREAKS = [reads_on_the_host, raises, forks_and_never_joins]


@pytest.mark.parametrize("break_off", BREAKS)
def test_the_stream_and_the_backend_are_as_before(break_off: Callable[[Tensor], None]) -> None:
    backend = CudaBackend()
    rows, out = torch.ones(1 << 20, device=backend.device), torch.zeros(1, device=backend.device)
    here = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's
    with torch.cuda.stream(here):
        for _ in range(2):
            with pytest.raises(CaptureError):
                backend.capture(lambda: break_off(rows))
            assert torch.cuda.current_stream() == here
        assert not torch.cuda.is_current_stream_capturing()

    def sums() -> None:
        out.copy_(rows.sum())

    backend.warm_up(sums)
    graph = backend.capture(sums)
    graph.replay()
    assert out.item() == 1 << 20
    backend.close()


@pytest.mark.parametrize("break_off", BREAKS)
def test_graphs_from_before_still_replay(break_off: Callable[[Tensor], None]) -> None:
    backend = CudaBackend()
    rows, out = torch.ones(1 << 20, device=backend.device), torch.zeros(1, device=backend.device)

    def sums() -> None:
        out.copy_((rows * 2).sum())

    before = backend.capture(sums)
    with pytest.raises(CaptureError):
        backend.capture(lambda: break_off(rows))
    behind = backend.capture(sums)
    rows.fill_(3)
    for graph in (before, behind, before):
        out.zero_()
        graph.replay()
        assert out.item() == 6 << 20
    backend.close()


def test_memory_is_given_back_after_a_break() -> None:
    """`torch.cuda.empty_cache` does nothing while any pool is taken as recorded into."""
    backend = CudaBackend()
    rows = torch.ones(1 << 10, device=backend.device)
    with pytest.raises(CaptureError):
        backend.capture(lambda: reads_on_the_host(rows))
    before = torch.cuda.memory_reserved()
    large = torch.ones(1 << 28, device=backend.device)
    del large
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < before + (1 << 28)
    backend.close()


@pytest.mark.parametrize("break_off", BREAKS)
def test_the_pool_of_a_broken_capture_is_given_back(break_off: Callable[[Tensor], None]) -> None:
    """Whoever takes a pool out of use for good has its memory stay reserved."""
    backend = CudaBackend()
    rows = torch.ones(1 << 10, device=backend.device)

    def body() -> None:
        torch.empty(1 << 28, dtype=torch.uint8, device=rows.device)
        break_off(rows)

    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    with pytest.raises(CaptureError):
        backend.capture(body)
    backend.close()
    del backend
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < before + (1 << 28)


@pytest.mark.parametrize("break_off", BREAKS)
@pytest.mark.parametrize("closed", [False, True])
def test_what_broke_off_may_be_dropped_in_any_order(
    break_off: Callable[[Tensor], None], closed: bool
) -> None:
    """An error raised while memory is given back would take the process along."""
    backend = CudaBackend()
    rows = torch.ones(1 << 20, device=backend.device)

    def adds() -> None:
        rows.add_(1)

    kept: list[object] = [backend.capture(adds)]
    try:
        backend.capture(lambda: break_off(rows))
    except CaptureError as problem:
        kept.append(problem)  # its frames hold the backend and what was recorded
        kept.append(kept)  # and a cycle holds them
    if closed:
        backend.close()
    del backend
    gc.collect()
    del kept
    gc.collect()
    torch.cuda.empty_cache()
    another = CudaBackend()
    rows.zero_()
    graph = another.capture(adds)
    graph.replay()
    assert rows.eq(1).all()
    another.close()
