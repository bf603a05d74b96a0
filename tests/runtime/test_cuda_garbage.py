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
    """Python's collector runs whenever a third object was made."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(2)
    yield
    gc.set_threshold(*before)


class Dropped:
    """A captured graph with its pool, which tells when it goes."""

    def __init__(self, gone: list[str]) -> None:
        self.gone = gone
        self.backend = CudaBackend()
        ones = torch.ones(4 << 20, device=self.backend.device)

        def body() -> None:
            torch.relu(ones)

        self.backend.capture(body)

    def __del__(self) -> None:
        self.gone.append("collected")


def make_objects() -> None:
    for _ in range(100):
        holder: list[object] = []
        holder.append(holder)


@pytest.mark.usefixtures("eager_collector")
def test_a_dropped_runner_does_not_go_amid_a_capture() -> None:
    gone: list[str] = []
    backend = CudaBackend()
    rows, out = torch.ones(8, device=backend.device), torch.zeros(8, device=backend.device)
    held = [Dropped(gone)]
    seen: list[int] = []

    def body() -> None:
        young: list[object] = [held.pop()]  # the youngest generation is the one that is looked at
        young.append(young)  # and a cycle is what only the collector finds, as in a runner
        del young
        make_objects()
        seen.append(len(gone))
        out.copy_(rows * 2)

    graph = backend.capture(body)
    make_objects()
    assert (seen, len(gone)) == ([0], 1)  # it went, and only once the capture was over
    graph.replay()
    torch.cuda.synchronize()
    assert out.tolist() == [2.0] * 8
    backend.close()
