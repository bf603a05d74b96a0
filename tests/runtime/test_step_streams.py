"""Steps over several streams: one on another stream waits for the last, others pay nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ppcgc.runtime.backends.cuda import CudaBackend

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Streams:
    """Stands in for CUDA: named streams, the current one, and who waited for whom."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current = 0
        self.waits: list[tuple[int, int]] = []
        self.asked = 0  # how often the stream was looked up as an object, which is not cheap
        monkeypatch.setattr(
            torch._C, "_cuda_getCurrentRawStream", lambda index: self.current, raising=False
        )
        monkeypatch.setattr(torch.cuda, "current_stream", self._stream)

    def _stream(self, device: Any) -> Any:
        self.asked += 1
        own = self.current
        return SimpleNamespace(
            cuda_stream=own, wait_stream=lambda other: self.waits.append((own, other.cuda_stream))
        )

    def backend(self) -> CudaBackend:
        """A backend without its graphs: what orders steps, on device 0."""
        backend = CudaBackend.__new__(CudaBackend)
        backend.device, backend._index = torch.device("cuda", 0), 0
        backend._last_stream = backend._step_stream = None
        return backend


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([0], []),
        ([0, 0, 0], []),
        ([7, 7], []),
        ([0, 7], [(7, 0)]),  # the default stream is 0, and is waited for as any other
        ([7, 0], [(0, 7)]),
        ([7, 8, 8, 7, 7], [(8, 7), (7, 8)]),
        ([1, 2, 3, 1], [(2, 1), (3, 2), (1, 3)]),
    ],
)
def test_a_step_waits_for_the_last_one_on_another_stream(
    monkeypatch: pytest.MonkeyPatch, steps: list[int], waits: list[tuple[int, int]]
) -> None:
    streams = Streams(monkeypatch)
    backend = streams.backend()
    for stream in steps:
        streams.current = stream
        backend.join_stream()
    assert streams.waits == waits


def test_a_step_on_the_same_stream_looks_up_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    backend = streams.backend()
    streams.current = 5
    for _ in range(10):
        backend.join_stream()
    assert streams.asked == 1


def test_backends_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams(monkeypatch)
    one, other = streams.backend(), streams.backend()
    one.join_stream()
    streams.current = 7
    other.join_stream()
    assert streams.waits == []
    one.join_stream()
    assert streams.waits == [(7, 0)]


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("own_first", [False, True], ids=["from default", "from a stream"])
def test_a_load_on_another_stream_does_not_overtake_a_replay(own_first: bool) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    stream: Any = torch.cuda.Stream
    sleep: Any = torch.cuda._sleep
    backend = CudaBackend(device)
    slot, out = torch.zeros(1024, device=device), torch.zeros(1024, device=device)

    def body() -> None:
        sleep(100_000_000)  # cycles: tens of milliseconds, before the slot is read
        out.copy_(slot)

    backend.warm_up(body)
    graph = backend.capture(body)
    default, own, third = torch.cuda.default_stream(device), stream(device), stream(device)
    kept = []
    sources = [torch.full((1024,), value, device=device) for value in (1.0, 2.0, 3.0)]
    torch.cuda.synchronize()
    order = (own, default, third) if own_first else (default, own, third)
    for source, current in zip(sources, order, strict=True):
        with torch.cuda.stream(current):
            backend.join_stream()
            slot.copy_(source)
            graph.replay()
            kept.append(out.clone())
    torch.cuda.synchronize()
    assert [float(rows.min()) for rows in kept] == [1.0, 2.0, 3.0]
    assert [float(rows.max()) for rows in kept] == [1.0, 2.0, 3.0]
    backend.close()
