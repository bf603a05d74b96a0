"""Runners inside schedules of torch.distributed.pipelining, in eval."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import run_ranks, values
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from toy_pipeline import build, plain, prefill_batch

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
