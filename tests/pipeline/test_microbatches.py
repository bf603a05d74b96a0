"""Runners inside schedules of torch.distributed.pipelining, in eval."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from parallel_toy import Whole, sequences
from parallel_toy import build as build_parallel
from rank_processes import new_group, run_ranks, values
from test_pipeline_parallel import LANES, place
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from toy_pipeline import build, plain, prefill_batch

from ppcgc import runtime as rt
from ppcgc.runtime import capture
from ppcgc.runtime.errors import MicrobatchError
from ppcgc.runtime.pipeline import Microbatched

COUNT, TOKENS = 4, 13
ROWS = {"tokens": TOKENS, "requests": 1}


def batches(turn: int, tokens: int = TOKENS) -> list[Any]:
    return [prefill_batch([tokens], seed=10 * turn + number) for number in range(COUNT)]


def through_a_schedule(rank: int, schedule_name: str) -> Any:
    warnings.simplefilter("ignore")  # torch's own, of its schedules
    each = 2 if schedule_name == "interleaved" else 1
    numbers = [rank + 2 * turn for turn in range(each)]
    modules = []
    for number in numbers:
        runner = build(number, 2 * each, names=("prefill",)).runners["prefill"]
        modules.append(Microbatched(runner, COUNT, rows=ROWS))
    capture([module.runner for module in modules])
    stages = [
        module.pipeline_stage(number, 2 * each)
        for module, number in zip(modules, numbers, strict=True)
    ]
    schedule: Any
    if schedule_name == "interleaved":
        schedule = ScheduleInterleaved1F1B(stages, COUNT)
    elif schedule_name == "gpipe":
        schedule = ScheduleGPipe(stages[0], COUNT)
    else:
        schedule = Schedule1F1B(stages[0], COUNT)
    outputs = []
    for turn in range(3):
        for module in modules:
            module.load(batches(turn))
        with torch.no_grad():
            made = schedule.eval()
        outputs.append(None if made is None else made.clone())
    replays = sum(module.runner.report().replays for module in modules)
    return outputs, replays, each


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_a_schedule_gives_every_microbatch_its_own_numbers(schedule: str, tmp_path: Path) -> None:
    first, last = values(run_ranks(2, through_a_schedule, tmp_path, schedule))
    assert first[0] == [None] * 3
    for turn, made in enumerate(last[0]):
        expected = torch.cat([plain(batch) for batch in batches(turn)])
        torch.testing.assert_close(made, expected, atol=1e-5, rtol=0)
    for _, replays, each in (first, last):
        assert replays == 3 * COUNT * each  # not one call more, to learn the shapes


def split_through_a_schedule(rank: int, lengths: list[int]) -> Any:
    """Two microbatches of these prefills, whose rows are split over two ranks of tp."""
    warnings.simplefilter("ignore")
    lanes = [new_group(lane) for lane in LANES]
    stage, tp = place(rank)
    runner = build_parallel(stage, 2, tp=tp, names=("prefill",)).runners["prefill"]
    rows = runner.extents(sequences(lengths, seed=1))._asdict()
    module = Microbatched(runner, 2, rows=rows)
    capture([runner])
    schedule = ScheduleGPipe(module.pipeline_stage(stage, 2, group=lanes[rank % 2]), 2)
    module.load([sequences(lengths, seed=seed) for seed in (1, 2)])
    with torch.no_grad():
        made = schedule.eval()
    return None if made is None else made.clone(), str(runner.last_step)


@pytest.mark.parametrize(
    ("lengths", "path"),
    [
        ([5, 11, 3], "replay 19→32"),  # the second part is cut
        ([7], "replay 7→16"),  # the second part has no live row
        ([3] * 17, "eager 51 (over capacity)"),  # 26 and 25 rows
    ],
)
def test_split_rows_go_through_a_schedule(lengths: list[int], path: str, tmp_path: Path) -> None:
    outcomes = values(run_ranks(4, split_through_a_schedule, tmp_path, lengths))
    whole = Whole()
    expected = torch.cat([whole("prefill", sequences(lengths, seed=seed)) for seed in (1, 2)])
    for made, taken in outcomes[2:]:
        torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
        assert taken == path


def split_in_a_dropped_bucket(rank: int) -> Any:
    tp = rt.Ranks.of(new_group([0, 1]))
    runner = build_parallel(0, 2, tp=tp, names=("prefill",)).runners["prefill"]
    batch = sequences([5, 11, 3], seed=1)
    module = Microbatched(runner, 1, rows=runner.extents(batch)._asdict())
    capture([runner])
    runner.dropped[runner.choose(runner.extents(batch)).padded] = "no memory"
    runner.forget_choices()
    module.load([batch])
    module()


def test_split_rows_of_another_path_are_refused(tmp_path: Path) -> None:
    for outcome in run_ranks(2, split_in_a_dropped_bucket, tmp_path):
        assert outcome.kind == "MicrobatchError"
        assert "microbatch 0 ran as eager 19 (bucket dropped); its boundary" in outcome.text


def test_uneven_microbatches_are_refused() -> None:
    runner = build(0, 2, names=("prefill",)).runners["prefill"]
    module = Microbatched(runner, COUNT, rows=ROWS)
    uneven = [*batches(0)[:-1], prefill_batch([TOKENS - 1])]
    with pytest.raises(MicrobatchError, match=r"microbatch 3 has .*tokens=12.*all must have"):
        module.load(uneven)
    with pytest.raises(MicrobatchError, match="3 batches for 4 microbatches"):
        module.load(batches(0)[:3])
    with pytest.raises(MicrobatchError, match=r"rows by axis .*; give tokens, requests"):
        Microbatched(runner, COUNT, rows={"tokens": TOKENS})


def test_a_microbatch_without_a_batch_is_an_error() -> None:
    runner = build(0, 2, names=("prefill",)).runners["prefill"]
    capture([runner])
    module = Microbatched(runner, 1, rows=ROWS)
    with pytest.raises(MicrobatchError, match="microbatch 0 has no batch, 0 were given"):
        module()
    module.load(batches(0)[:1])
    module()
    with pytest.raises(MicrobatchError, match="microbatch 1 has no batch, 1 were given"):
        module()


def test_received_rows_of_another_shape_are_refused() -> None:
    runner = build(1, 2, names=("prefill",)).runners["prefill"]
    capture([runner])
    module = Microbatched(runner, 1, rows=ROWS)
    module.load(batches(0)[:1])
    with pytest.raises(MicrobatchError, match=r"received \[\(12, 8\), \(12, 8\)\]"):
        module(torch.zeros(12, 8), torch.zeros(12, 8))
