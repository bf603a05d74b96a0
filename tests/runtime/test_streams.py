"""Steps that move from one CUDA stream to another."""

from __future__ import annotations

import pytest
import torch

from ppcgc.runtime.backends.cuda import CudaBackend


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_load_waits_for_a_replay_on_another_stream() -> None:
    backend = CudaBackend()
    slot = torch.zeros(1024, device=backend.device)
    out = torch.zeros_like(slot)

    def slow() -> None:
        torch.cuda._sleep(20_000_000)  # type: ignore[no-untyped-call]  # torch's; some 10 ms
        out.copy_(slot)

    backend.warm_up(slow)
    graph = backend.capture(slow)
    kept = []
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]  # type: ignore[no-untyped-call]  # torch's
    for step in range(4):
        with torch.cuda.stream(streams[step % 2]):
            backend.join_stream()
            slot.fill_(step + 1)
            graph.replay()
            backend.join_stream()  # the same stream: nothing to wait for
            kept.append(out.clone())
    torch.cuda.synchronize()
    assert [(rows.amin().item(), rows.amax().item()) for rows in kept] == [
        (n, n) for n in (1, 2, 3, 4)
    ]
    backend.close()
