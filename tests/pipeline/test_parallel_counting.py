"""Collectives are counted: no call of one step meets another rank's call of the next."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from parallel_toy import ParallelStage, build, next_tokens
from rank_processes import new_group, run_ranks, values
from test_parallel_faults import CULPRIT, Skips
from test_pipeline_parallel import LANES, place

from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.board import Board
from ppcgc.runtime.pipeline.collectives import failed_collective
from ppcgc.runtime.pipeline.counting import Counting
from ppcgc.runtime.pipeline.faults import Faults
from ppcgc.runtime.pipeline.store import own_store

FAULTY, STEPS = 1, 4


def serve_eagerly(rank: int) -> Any:
    """Eager steps, in one of which the culprit leaves its last sum out. The error, and outputs."""
    stage, tp = place(rank)
    model = Skips if rank == CULPRIT else ParallelStage
    runner = build(stage, 2, tp=tp, model=model, names=("decode",)).runners["decode"]
    returned = 0
    try:
        with Pipeline([runner], lanes=LANES, timeout=2.0) as pipeline:
            pipeline.capture()
            for step in range(STEPS):
                if rank == CULPRIT:
                    runner.model.skip = step == FAULTY
                pipeline.run("decode", next_tokens([3] * 17, seed=step))
                returned += 1
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}", returned
    return "served", returned


def test_a_collective_left_out_ends_its_own_step(tmp_path: Path) -> None:
    outcomes = values(run_ranks(4, serve_eagerly, tmp_path, limit=40))
    for error, _ in outcomes:
        assert error.startswith(f"HandOffTimeoutError: rank {CULPRIT} failed in step {FAULTY}: ")
    assert [returned for _, returned in outcomes[2:]] == [FAULTY] * 2  # the culprit as well


def compare(rank: int, ranks: int) -> Any:
    """What the counts of a group say: alike, then with a call that only rank 1 makes."""
    members = range(ranks)
    group, control = new_group(list(members)), new_group(list(members))
    board = Board(own_store(), "counting", rank=rank, members=members, timeout=5)
    counting = Counting([group], members, control, Faults(board, 5))
    before = counting.now()
    dist.all_reduce(torch.zeros(3), group=group)
    assert counting.since(before) == {", ".join(map(str, members)): 1}
    counting.compare(6, before)
    kept = []
    if rank == 1:
        kept.append(dist.irecv(torch.zeros(3), src=0, group=group, tag=9))  # which nobody sends
    try:
        counting.compare(7, before)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "alike"


def test_neighbours_see_another_count(tmp_path: Path) -> None:
    first, second, third = values(run_ranks(3, compare, tmp_path, 3))
    assert first == "alike"  # its neighbour is rank 2
    said = "DisagreementError: step 7: rank {} took part in {} collectives of the ranks 0, 1, 2"
    assert second.startswith(said.format(0, 1) + ", rank 1 in 2;")
    assert third.startswith(said.format(1, 2) + ", rank 2 in 1;")


def waits_in_vain(rank: int) -> tuple[str, bool]:
    """A wait with a limit of its own for ranks that come too late, and whether it is known."""
    group = new_group([0, 1])
    if rank == 1:
        time.sleep(1.5)
        return "late", True
    work = dist.all_reduce(torch.zeros(1), group=group, async_op=True)
    try:
        work.wait(timedelta(seconds=0.3))
    except RuntimeError as problem:
        return str(problem), failed_collective(problem) is problem
    return "done", False


def test_a_wait_for_a_collective_in_vain_is_known(tmp_path: Path) -> None:
    (said, known), _ = values(run_ranks(2, waits_in_vain, tmp_path))
    assert "timed out" in said.lower() and known


def know(rank: int) -> Any:
    """What all ranks know: a difference in a trial, and in a capture."""
    group = new_group([0, 1])
    board = Board(own_store(), "known", rank=rank, members=(0, 1), timeout=5)
    uneven, even = {0: {"0, 1": 4}, 1: {"0, 1": 3}}, {0: {"0, 1": 4}, 1: {"0, 1": 4}}
    counting = Counting([group], (0, 1), group, Faults(board, 5))
    counting.compare_known("capture", even, trial=False)
    try:
        counting.compare_known("capture", uneven, trial=False)
        refused = "nothing"
    except Exception as problem:
        refused = f"{type(problem).__name__}: {problem}"
    counted = bool(counting)
    counting.compare_known("warm up", uneven, trial=True)
    apart = Counting([group], (rank,), group, Faults(board, 5))  # the other has steps of its own
    return refused, counted, bool(counting), bool(apart)


def test_counts_of_a_capture_and_of_a_trial(tmp_path: Path) -> None:
    for refused, *counted in values(run_ranks(2, know, tmp_path)):
        assert refused.startswith(
            "DisagreementError: capture: rank 0 took part in 4 collectives of the ranks 0, 1, "
            "rank 1 in 3;"
        )
        assert counted == [True, False, False]
