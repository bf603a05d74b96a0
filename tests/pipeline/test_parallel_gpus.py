"""Tensor parallelism over NCCL: collectives inside CUDA graphs, and one that a rank leaves out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from parallel_toy import Whole, build
from rank_processes import new_group, run_ranks, values
from test_pipeline_parallel import check, serve, steps

from ppcgc import runtime as rt
from ppcgc.runtime.errors import PeerError
from ppcgc.runtime.pipeline import Pipeline

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
]

LANES = [[0], [1]]  # one stage, two ranks of tp
TIMEOUT = 6.0


def only_stage(rank: int) -> Any:
    tp = rt.Ranks.of(new_group([0, 1], backend="nccl"))
    return build(0, 1, tp=tp, backend=rt.open_backend(f"cuda:{rank}"))


def serve_one_stage(rank: int) -> Any:
    built = only_stage(rank)
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=30) as pipeline:
        pipeline.capture()
        calls = built.runners["decode"].model.calls
        outputs, paths = [], []
        for turn in range(3):  # later turns replay over what the first left behind
            for (name, _), made in zip(steps(), pipeline.stream(steps()), strict=True):
                paths.append(str(built.runners[name].last_step))
                if turn == 2:
                    outputs.append(made.hidden_states.cpu().clone())
        eager = sum("eager" in path for path in paths)
        # only eager decode steps call the sum in Python: in replays it is inside the graph
        return outputs, paths, built.runners["decode"].model.calls - calls, eager


def test_one_stage_over_two_gpus_sums_inside_its_graphs(tmp_path: Path) -> None:
    made = values(run_ranks(2, serve_one_stage, tmp_path, limit=120.0, gpus=True))
    whole = Whole()
    for name, batch in [*steps(), *steps()]:
        whole(name, batch)  # the cache as two turns leave it
    wanted = [whole(name, batch) for name, batch in steps()]
    for outputs, paths, calls, eager in made:
        for output, expected in zip(outputs, wanted, strict=True):
            torch.testing.assert_close(output, expected, atol=1e-4, rtol=1e-4)
        assert paths == made[0][1] and "replay 19→32" in paths
        assert eager == 6 and calls == 3 * 4  # one decode step a turn is eager, of four layers


def leave_one_out(rank: int) -> Any:
    """Rank 1 does not come to the third step: rank 0's GPU waits inside of its replay."""
    built = only_stage(rank)
    decode = [batch for name, batch in steps() if name == "decode"]
    with Pipeline([built.runners["decode"]], lanes=LANES, timeout=TIMEOUT) as pipeline:
        pipeline.capture()
        for batch in decode[:2]:
            pipeline.run("decode", batch)
        torch.cuda.synchronize()
        start = time.monotonic()
        if rank == 1:
            time.sleep(2 * TIMEOUT)
        with pytest.raises(PeerError) as raised:
            pipeline.run("decode", decode[0])
            torch.cuda.synchronize()  # comes back once the watch has broken the collective off
            pipeline.run("decode", decode[0])
        return str(raised.value), time.monotonic() - start


def test_a_replay_that_waits_for_a_rank_ends_in_time(tmp_path: Path) -> None:
    (text, waited), _ = values(run_ranks(2, leave_one_out, tmp_path, limit=90.0, gpus=True))
    assert "rank 1 failed in step 2" in text
    assert waited < 2 * TIMEOUT


@pytest.mark.skipif(torch.cuda.device_count() < 4, reason="needs four CUDA devices")
def test_two_stages_of_two_ranks_on_four_gpus(tmp_path: Path) -> None:
    check(values(run_ranks(4, serve, tmp_path, 2, True, limit=150.0, gpus=True)), atol=1e-4)
