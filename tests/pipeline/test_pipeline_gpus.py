"""Two GPUs over NCCL: every transport gives the numbers of one process, in mixed order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values
from toy_pipeline import build, mixed_steps, plain, prefill_batch

from ppcgc import runtime as rt
from ppcgc.runtime.pipeline import Pipeline

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
]


def on_two_gpus(folder: Path, work: Any, *args: Any) -> list[Any]:
    return values(run_ranks(2, work, folder, *args, limit=90.0, gpus=True))


def serve(rank: int, transport: str, in_flight: int) -> Any:
    built = build(rank, 2, backend=rt.open_backend(f"cuda:{rank}"))
    runners = list(built.runners.values())
    with Pipeline(runners, transport=transport, in_flight=in_flight, timeout=30) as pipeline:
        pipeline.capture()
        outputs, paths = [], []
        for turn in range(3):  # the second turn replays over what the first left behind
            for (name, _), made in zip(mixed_steps(), pipeline.stream(mixed_steps()), strict=True):
                paths.append(str(built.runners[name].last_step))
                if turn == 2:
                    outputs.append(None if made is None else made.hidden_states.cpu())
        report = str(pipeline.report())
    return outputs, paths, report, torch.cuda.memory_allocated(rank)


@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize("transport", ["eager", "captured", "symmetric"])
def test_a_transport_gives_the_numbers_of_the_plain_model(
    transport: str, in_flight: int, tmp_path: Path
) -> None:
    first, last = on_two_gpus(tmp_path, serve, transport, in_flight)
    assert first[1] == last[1]
    for (_, batch), made in zip(mixed_steps(), last[0], strict=True):
        torch.testing.assert_close(made, plain(batch), atol=1e-4, rtol=0)
    for _, _, report, _ in (first, last):
        assert "last step of prefill: replay 64→64, cuda graph: True" in report
        assert f"transport {transport}" in report


def prefill_alone(rank: int) -> Any:
    """Prefill by its graphs while every decode step is asked to run eagerly."""
    built = build(rank, 2, backend=rt.open_backend(f"cuda:{rank}"))
    with Pipeline([built.runners["prefill"]], timeout=30) as pipeline:
        pipeline.capture()
        made = pipeline.run("prefill", prefill_batch([47], seed=1))
        return (
            None if made is None else made.hidden_states.cpu(),
            str(built.runners["prefill"].last_step),
        )


def test_a_prompt_of_47_tokens_goes_through_the_graph_of_64_on_both_ranks(tmp_path: Path) -> None:
    (_, first), (made, last) = on_two_gpus(tmp_path, prefill_alone)
    assert first == last == "replay 47→64"
    torch.testing.assert_close(made, plain(prefill_batch([47], seed=1)), atol=1e-4, rtol=0)
