"""Runners that were dropped without being closed, and go while another one captures."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch

from ppcgc.runtime.backends.cuda import CudaBackend

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture
def eager_collector() -> Iterator[None]:
    """Python's collector runs at every other object that is made."""
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    gc.set_threshold(2, 1, 1)
    yield
    gc.set_threshold(*before)
    gc.enable()


class Dropped:
    """A captured graph with its pool, in a cycle, as a runner with closures is."""

    def __init__(self, alive: list[str]) -> None:
        self.itself = self
        self.alive = alive
        self.backend = CudaBackend()
        ones = torch.ones(4 << 20, device=self.backend.device)

        def body() -> None:
            torch.relu(ones)

        self.backend.capture(body)

    def __del__(self) -> None:
        self.alive.append("collected")


def make_objects() -> None:
    for _ in range(2000):
        holder: list[object] = []
        holder.append(holder)


@pytest.mark.usefixtures("eager_collector")
def test_a_dropped_runner_does_not_go_amid_a_capture() -> None:
    collected: list[str] = []
    backend = CudaBackend()
    rows, out = torch.ones(8, device=backend.device), torch.zeros(8, device=backend.device)
    dropped = Dropped(collected)
    seen: list[int] = []
    gc.enable()

    def body() -> None:
        nonlocal dropped
        del dropped
        make_objects()
        seen.append(len(collected))
        out.copy_(rows * 2)

    graph = backend.capture(body)
    make_objects()
    assert (seen, len(collected)) == ([0], 1)  # it went, and only once the capture was over
    graph.replay()
    torch.cuda.synchronize()
    assert out.tolist() == [2.0] * 8
    backend.close()
