"""Slots of hooks and the caller: zero before they are written, padded behind whoever wrote them."""

from __future__ import annotations

from typing import Any

import pytest
from written_model import Planner, batch_of, built, write_as_caller

PLANNER = Planner()

# three requests of four and one page of two, by hand: live rows by `Reckless` and the caller
AT_THE_REPLAY: dict[str, list[Any]] = {
    "bias": [-3, -3, -3, 0],
    "codes": [[2, 2, 2, -1]] * 2,
    "depth": [-3, -3, -3, 30],
    "again": [-3, -3, -3, -3],
    "ends": [0, 1, 1, 1, 1],
    "noise": [-3, -3, -3, 0],
    "whole": [3, 3],
    "table": [4, 7],
    "grid": [[1, 5]] * 3 + [[0, 0]],
    "embeds": [1, 1, 1, 0],
    "drafted": [2, 2, 2, 9],
}
# 1..3 + twice 2 + 2 + 6 - 3 (depth) - 3 (again) - 3 (bias) - 2 (noise) + 1 - 3 (kept)
TOTAL = [0.0, 1.0, 2.0]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return built(tmp_path_factory.mktemp("written"), planner=PLANNER)


def stepped(runner: Any, requests: int, pages: int, *, eagerly: bool = False) -> list[float]:
    batch = batch_of(requests, pages)
    step = runner.begin_eager(batch) if eagerly else runner.begin(batch)
    write_as_caller(runner, step, batch)
    total: list[float] = runner.finish(step).total.tolist()
    return total


def test_a_hook_and_the_caller_find_zeros_in_a_replay_as_in_an_eager_step(runner: Any) -> None:
    stepped(runner, 4, 4)
    assert stepped(runner, 3, 1) == TOTAL
    assert runner.last_step.choice.padded == (4, 2)
    assert stepped(runner, 3, 1) == TOTAL
    assert stepped(runner, 3, 1, eagerly=True) == TOTAL


def test_rows_written_past_live_hold_their_padding_at_plans_and_replay(runner: Any) -> None:
    stepped(runner, 4, 2)
    stepped(runner, 3, 1)
    planned = {name: PLANNER.seen[name].tolist() for name in AT_THE_REPLAY}
    assert planned == AT_THE_REPLAY
    slots = runner.table[runner.last_step.choice.padded].slots
    after = {name: getattr(slots, name).tolist() for name in AT_THE_REPLAY}
    assert after == {**AT_THE_REPLAY, "noise": [-2, -2, -2, 1]}  # the forward adds 1 to it


def test_a_slot_that_keeps_is_kept_past_live_and_zeroed_before(runner: Any) -> None:
    step = runner.begin(batch_of(3, 1))
    assert step.slots.kept[:3].tolist() == [-3, -3, -3]
    step.slots.kept[3] = 17
    write_as_caller(runner, step, batch_of(3, 1))
    runner.finish(step)
    assert step.slots.kept.tolist() == [-3, -3, -3, 17]


def test_a_full_bucket_has_nothing_to_pad(runner: Any) -> None:
    stepped(runner, 4, 2)
    assert PLANNER.seen["bias"].tolist() == [-4] * 4
    assert PLANNER.seen["ends"].tolist() == [0, 2, 2, 2, 2]
    assert PLANNER.seen["grid"].tolist() == [[1, 1]] * 4


def test_no_live_row_is_padding_alone(runner: Any) -> None:
    stepped(runner, 4, 0)
    stepped(runner, 0, 0)
    assert PLANNER.seen["bias"].tolist() == [0, 0]
    assert PLANNER.seen["codes"].tolist() == [[-1, -1]] * 2
    assert PLANNER.seen["depth"].tolist() == [0, 0]  # ten times no live request
    assert PLANNER.seen["ends"].tolist() == [0, 0, 0]
    assert PLANNER.seen["drafted"].tolist() == [9, 9]


def test_a_bucket_without_the_axis_lacks_the_slots(runner: Any) -> None:
    stepped(runner, 3, 0)
    assert {"table", "grid"} & PLANNER.seen.keys() == set()
    assert PLANNER.seen["bias"].tolist() == [-3, -3, -3, 0]


def test_what_the_load_leaves_to_the_caller(runner: Any) -> None:
    stepped(runner, 4, 2)
    slots = runner.begin(batch_of(3, 2)).slots
    assert slots.embeds.tolist() == [0, 0, 0, 0]
    assert slots.drafted.tolist() == [0, 0, 0, 9]
