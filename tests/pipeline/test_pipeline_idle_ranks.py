"""Ranks of dp whose models meet in collectives: one bucket for all, an idle rank replays too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from parallel_toy import ParallelStage, Whole, build, norm, sequences
from rank_processes import new_group, run_ranks, values
from torch import Tensor

from ppcgc import runtime as rt
from ppcgc.runtime.errors import PpcgcError
from ppcgc.runtime.pipeline import Pipeline

LANES = [[0, 2], [1, 3]]  # the pipelines of dp ranks 0 and 1


class SharedExperts(ParallelStage):
    """Each rank of dp has a part of the columns of ``up``, as experts are spread over ranks.

    All rows of all ranks go through every part: gathered before, summed and parted after. Every
    rank has as many padded rows, or the calls would not meet.
    """

    def forward(
        self, *, input_ids: Any, positions: Tensor, batch: Any, pp_proxy_tensors: Any
    ) -> Any:
        if pp_proxy_tensors is None:
            hidden = self.table[input_ids]
            residual = positions[:, None].to(hidden.dtype) / 100 + torch.zeros_like(hidden)
        else:
            hidden, residual = pp_proxy_tensors["hidden_states"], pp_proxy_tensors["residual"]
        everybody = self.tp.size * positions.shape[0]
        for up, down in zip(self.up, self.down, strict=True):
            residual = residual + hidden
            inner = self.gathered(norm(residual), everybody) @ up
            hidden = self.own_sum(torch.tanh(inner) @ down)
        return hidden + residual if self.last else {"hidden_states": hidden, "residual": residual}


def of_dp(rank: int, model: type[ParallelStage]) -> tuple[Any, int]:
    """The prefill runner of a rank of dp, and its number there."""
    groups = [new_group(list(pair)) for pair in zip(*LANES, strict=True)]
    stage = rank // 2
    dp = rt.Ranks.of(groups[stage])
    split = dp if model is SharedExperts else rt.ALONE
    built = build(stage, 2, dp=dp, names=("prefill",), model=model, split=split)
    return built.runners["prefill"], dp.rank


#: live rows of ranks 0 and 1 in each step, as sequences
LOADS: list[tuple[list[int], list[int]]] = [
    ([5, 4], [16, 16, 8]),  # 9 rows of a bucket of 64 that 40 need
    ([], [7]),  # rank 0 is idle
    ([16] * 6, []),  # rank 1 is
    ([], []),
    ([3], [16, 14]),
]


def batch_of(number: int, dp: int) -> Any:
    load = LOADS[number]
    batch = sequences(load[dp], seed=10 * number + dp, all_tokens=[sum(rows) for rows in load])
    batch.all_requests = [len(rows) for rows in load]
    return batch


def serve(rank: int) -> Any:
    runner, dp = of_dp(rank, SharedExperts)
    with Pipeline([runner], lanes=LANES, timeout=15) as pipeline:
        pipeline.capture()
        outputs, paths = [], []
        batches = [("prefill", batch_of(number, dp)) for number in range(len(LOADS))]
        for made in pipeline.stream(batches):
            paths.append(str(runner.last_step))
            outputs.append(None if made is None else made.hidden_states.clone())
        return outputs, paths


def test_every_rank_replays_the_bucket_of_the_largest_and_an_idle_one_too(tmp_path: Path) -> None:
    outcomes = values(run_ranks(4, serve, tmp_path))
    for dp, (outputs, paths) in enumerate(outcomes[2:]):
        for number, output in enumerate(outputs):
            expected = Whole()("prefill", batch_of(number, dp))
            torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
        assert paths == outcomes[dp][1]
    assert outcomes[2][1] == [
        "replay 9→64", "replay 0→16", "replay 96→128", "replay 0→16", "replay 3→32",
    ]  # fmt: skip
    assert outcomes[3][1] == [
        "replay 40→64", "replay 7→16", "replay 0→128", "replay 0→16", "replay 30→32",
    ]  # fmt: skip


def serve_apart(rank: int) -> Any:
    """Rank 1 of dp has no graph of 32 rows, then a batch that cannot be run; then all is well."""
    runner, dp = of_dp(rank, ParallelStage)
    with Pipeline([runner], lanes=LANES, timeout=15) as pipeline:
        pipeline.capture()
        if dp == 1:
            runner.drop(next(p for p in runner.buckets if p.tokens == 32), "for the test")
        pipeline.run("prefill", batch_of(4, dp))
        path = str(runner.last_step), runner.last_step.choice.detail
        bad = batch_of(0, dp)
        if dp == 1:  # fewer tokens than requests
            bad = sequences([1], seed=0, all_tokens=[9, 1])
            bad.num_requests = 2
        bad.all_tokens, bad.all_requests = [9, 1], [2, 2]
        with pytest.raises(PpcgcError) as refused:
            pipeline.run("prefill", bad)
        made = pipeline.run("prefill", batch_of(1, dp))
        rows = None if made is None else made.hidden_states.shape[0]
        return path, type(refused.value).__name__, str(refused.value), rows


def test_what_one_rank_cannot_replay_or_run_the_others_do_not_either(tmp_path: Path) -> None:
    made = values(run_ranks(4, serve_apart, tmp_path))
    assert [path for path, _, _, _ in made] == [
        ("eager 3 (bucket dropped)", "of rank 1"),
        ("eager 30 (bucket dropped)", "for the test"),
        ("eager 3 (bucket dropped)", "of rank 1"),
        ("eager 30 (bucket dropped)", "for the test"),
    ]
    assert [kind for _, kind, _, _ in made] == [
        "StepRefusedError", "LimitError", "StepRefusedError", "StepRefusedError",
    ]  # fmt: skip
    assert "rank 1 refused its batch of step 1" in made[0][2]
    assert [rows for _, _, _, rows in made] == [None, None, 0, 7]


def serve_other_lists(rank: int) -> None:
    runner, dp = of_dp(rank, ParallelStage)
    with Pipeline([runner], lanes=LANES, timeout=4) as pipeline:
        pipeline.capture()
        batch = sequences([6], seed=0, all_tokens=[6, 6] if dp else [6, 40])
        batch.all_requests = [1, 1]
        pipeline.run("prefill", batch)


def test_ranks_with_different_lists_are_both_named(tmp_path: Path) -> None:
    outcomes = run_ranks(4, serve_other_lists, tmp_path)
    for outcome in outcomes[:2]:
        assert outcome.kind in ("DisagreementError", "PeerError")
        assert "tokens_most is " in outcome.text
        assert "40 on rank 0" in outcome.text and "6 on rank 1" in outcome.text
    assert all(outcome.kind == "PeerError" for outcome in outcomes[2:])
