"""Tensor parallelism inside stages: two stages of two ranks each, as one unsplit model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from parallel_toy import Whole, build, next_tokens, sequences
from rank_processes import new_group, run_ranks, values

from ppcgc import runtime as rt
from ppcgc.runtime.pipeline import Pipeline

LANES = [[0, 2], [1, 3]]  # stages 0 and 1 of tp rank 0, then of tp rank 1


def place(rank: int, backend: str = "gloo") -> tuple[int, rt.Ranks]:
    """A rank's stage, and its place in tp with the group of the model's collectives."""
    groups = [new_group(list(pair), backend=backend) for pair in zip(*LANES, strict=True)]
    stage = rank // 2
    return stage, rt.Ranks.of(groups[stage])


def steps() -> list[tuple[str, Any]]:
    """Every kind: parts full, cut and empty, buckets up and down, eager steps that do not divide,
    decode steps that read what prefill wrote."""
    grown = [[6, 12, 4], [7, 13, 5], [8, 14, 6]]
    return [
        ("prefill", sequences([5, 11, 3], seed=1)),  # 19 of 32: the second part is cut
        ("decode", next_tokens(grown[0], seed=2)),
        ("decode", next_tokens(grown[1], seed=3)),
        ("prefill", sequences([7], seed=4)),  # 7 of 16: the second part has no live row
        ("prefill", sequences([16] * 16, seed=5)),
        ("decode", next_tokens([16] * 16, seed=6)),
        ("prefill", sequences([], seed=7)),
        ("prefill", sequences([16] * 4, seed=8)),
        ("decode", next_tokens([9], seed=9)),
        ("prefill", sequences([15] * 15, seed=10)),  # replays 256
        ("prefill", sequences([3] * 17, seed=11)),  # 17 requests: eager, 51 rows in 26 and 25
        ("decode", next_tokens([3] * 17, seed=12)),
        ("prefill", sequences([2, 1], seed=13)),
    ]


def serve(rank: int, in_flight: int, gpus: bool = False) -> Any:
    stage, tp = place(rank, "nccl" if gpus else "gloo")
    backend = rt.open_backend(f"cuda:{rank}") if gpus else None
    built = build(stage, 2, tp=tp, backend=backend)
    runners = list(built.runners.values())
    with Pipeline(runners, lanes=LANES, in_flight=in_flight, timeout=15) as pipeline:
        pipeline.capture()
        outputs, paths = [], []
        for (name, _), made in zip(steps(), pipeline.stream(steps()), strict=True):
            paths.append(str(built.runners[name].last_step))
            outputs.append(None if made is None else made.hidden_states.cpu().clone())
        received = {}
        if stage:
            prefill, decode = (built.runners[name].table for name in ("prefill", "decode"))
            received = {
                "prefill": [list(b.boundary.residual.shape) for b in prefill.values()],
                "decode": [list(b.boundary.residual.shape) for b in decode.values()],
            }
        return outputs, paths, received, pipeline.fingerprint


def check(outcomes: list[Any], atol: float = 1e-5) -> None:
    whole = Whole()
    wanted = [whole(name, batch) for name, batch in steps()]
    for outputs, paths, received, fingerprint in outcomes[2:]:
        for output, expected in zip(outputs, wanted, strict=True):
            torch.testing.assert_close(output, expected, atol=atol, rtol=1e-5)
        assert received["prefill"][0] == [8, 8] and received["decode"][0] == [1, 8]
        assert paths[0] == "replay 19→32" and paths[3] == "replay 7→16"
        assert paths[10] == "eager 51 (over capacity)" and paths[6] == "replay 0→16"
        assert paths == outcomes[0][1] and fingerprint == outcomes[0][3]
    assert all(outputs == [None] * len(wanted) for outputs, _, _, _ in outcomes[:2])


def test_two_stages_of_two_ranks_equal_the_unsplit_model(tmp_path: Path) -> None:
    check(values(run_ranks(4, serve, tmp_path, 1)))


def test_several_batches_in_flight_through_ranks_of_tp(tmp_path: Path) -> None:
    check(values(run_ranks(4, serve, tmp_path, 3)))


def calibrate(rank: int) -> Any:
    stage, tp = place(rank)
    built = build(stage, 2, tp=tp)
    with Pipeline(list(built.runners.values()), lanes=LANES, timeout=15) as pipeline:
        pipeline.capture()
        found = pipeline.calibrate()
        (made,) = pipeline.stream(steps()[:1])
        return [one.data() for one in found], None if made is None else made.hidden_states.clone()


def test_ranks_of_tp_calibrate_together(tmp_path: Path) -> None:
    outcomes = values(run_ranks(4, calibrate, tmp_path, limit=60))
    assert all(found == outcomes[0][0] and len(found) == 2 for found, _ in outcomes)
    expected = Whole()(*steps()[0])
    for _, made in outcomes[2:]:
        torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
