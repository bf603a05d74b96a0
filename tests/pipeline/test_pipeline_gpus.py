"""Two GPUs over NCCL: every transport gives the numbers of one process, in mixed order."""

from __future__ import annotations

import multiprocessing
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from toy_pipeline import ToyStage, build, decode_batch, mixed_steps, plain, prefill_batch

from ppcgc import runtime as rt
from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.pipeline import Pipeline

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
]


def start(rank: int, folder: str, work: Any, args: tuple[Any, ...]) -> None:
    """One rank: a GPU of its own, NCCL beside gloo; what it returns goes into a file."""
    os.environ["LOCAL_RANK"] = str(rank)
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    try:
        made: Any = work(rank, *args)
    except PpcgcError as problem:
        made = f"{type(problem).__name__}: {problem}"
    torch.save(made, Path(folder) / f"made-{rank}")
    dist.destroy_process_group()


def on_two_gpus(folder: Path, work: Any, *args: Any) -> list[Any]:
    context = multiprocessing.get_context("spawn")
    ranks = [
        context.Process(target=start, args=(rank, str(folder), work, args)) for rank in range(2)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(180)
        if process.is_alive():
            process.kill()
        assert process.exitcode == 0
    return [torch.load(folder / f"made-{rank}", weights_only=False) for rank in range(2)]


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


class Raising(ToyStage):
    def forward(self, **given: Any) -> Any:
        if len(given["positions"]) == 19:
            raise ValueError("no luck")
        return super().forward(**given)


def raise_at_a_step(rank: int, transport: str) -> Any:
    model = Raising if rank == 0 else ToyStage
    built = build(rank, 2, names=("decode",), backend=rt.open_backend(f"cuda:{rank}"), model=model)
    pipeline = Pipeline(list(built.runners.values()), transport=transport, timeout=5)
    pipeline.capture()
    try:
        for size in (4, 16, 19, 4):
            pipeline.run("decode", decode_batch(size))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        pipeline.close()
    return "served"


@pytest.mark.parametrize("transport", ["eager", "captured", "symmetric"])
def test_a_rank_that_raises_ends_the_other(transport: str, tmp_path: Path) -> None:
    first, last = on_two_gpus(tmp_path, raise_at_a_step, transport)
    assert first == "ValueError: no luck"
    assert last.startswith("PeerError: rank 0 failed in step 2: ValueError: no luck")
