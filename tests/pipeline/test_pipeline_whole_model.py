"""A whole model of the Llama-3.1-8B kind over two ranks, bucket for bucket against eager.

On the CPU a tiny one in float32; on two GPUs its real shape in bf16.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values

from benchmarks import two_ranks
from benchmarks.rank_stage import RankStage, new_rank_stage
from benchmarks.rank_steps import prefill
from benchmarks.shape import TINY
from generated import llama


@pytest.mark.parametrize(
    ("device", "transports"),
    [
        ("cpu", ["eager"]),
        pytest.param(
            "cuda",
            ["eager", "captured"],
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices"),
            ],
        ),
    ],
)
def test_every_bucket_equals_the_same_stages_run_eagerly(
    device: str, transports: list[str]
) -> None:
    made = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m", "benchmarks.two_ranks", "--device", device),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    for transport in transports:
        for rank in (0, 1):
            assert f"rank {rank}, transport {transport}, " in made.stdout
    assert made.stdout.count("EQUAL to eager in every bucket") == 2 * len(transports)
    assert "DIFFERENT" not in made.stdout


class Other(RankStage):
    """Its fifth call and those after it are a little off."""

    calls = 0

    def forward(self, **given: Any) -> Any:
        self.calls += 1
        made = super().forward(**given)
        if self.calls < 5:
            return made
        return {key: rows + 1e-3 for key, rows in made.items()} if not self.last else made + 1e-3


def compare_with_another(rank: int) -> Any:
    device = torch.device("cpu")
    layers = llama.stage_layers(two_ranks.dims_of(TINY), stage=rank, of=2)
    stage = new_rank_stage(TINY, layers, device)
    served = two_ranks.serve(stage, device, "eager")
    steps = [prefill([12], 16, seed=seed) for seed in range(6)]
    with served.pipeline as pipeline:
        pipeline.capture()
        good = two_ranks.compare(served, steps, "six")
        stage.__class__ = Other  # graphs replay what they have: only the reference changes
        wrong = two_ranks.compare(served, steps, "six")
        try:
            two_ranks.compare(served, [prefill([12], 32, seed=0)], "other bucket")
            refused = ""
        except RuntimeError as problem:
            refused = str(problem)
    return good, wrong, refused


def test_the_comparison_finds_what_is_not_equal(tmp_path: Path) -> None:
    for rank, (good, wrong, refused) in enumerate(
        values(run_ranks(2, compare_with_another, tmp_path))
    ):
        assert good == []
        keys = ["result"] if rank else ["hidden_states", "residual"]
        assert [line.rpartition(":")[0] for line in wrong[: len(keys)]] == [
            f"six: prefill 16, {key}" for key in keys
        ]
        assert refused == "prefill of 32 rows went as replay 12→16"
