"""The end of a pipeline: told like a step, never in silence, and nothing is left behind."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch.distributed as dist
from fault_scenarios import opened
from rank_processes import run_ranks, values
from toy_pipeline import decode_batch

from ppcgc.runtime.pipeline import Pipeline

TIMEOUT = 1.5
PATIENT = 15.0  # where nothing is to be waited for


def closes_early(rank: int, early: int) -> Any:
    """``early`` leaves after two steps, the others after four."""
    pipeline, _ = opened(rank, 3, "gloo", timeout=PATIENT)
    try:
        with pipeline:
            pipeline.capture()
            for _ in range(2 if rank == early else 4):
                pipeline.run("decode", decode_batch(4))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "served"


@pytest.mark.parametrize("early", [0, 2])
def test_a_rank_that_closes_early_is_found_at_once(early: int, tmp_path: Path) -> None:
    outcomes = values(run_ranks(3, closes_early, tmp_path, early))
    said = {0: "rank 0 is at the end (its step 2), rank", 2: "rank 2 at the end; call all ranks"}
    for rank, error in enumerate(outcomes):
        assert said[early] in error, (rank, error)
        assert "in step 2: DisagreementError" in error or "DisagreementError: step 2" in error


def ends_while_the_last_rank_fails(rank: int, with_block: bool) -> Any:
    """The last of two ranks fails in the last step, when the first has handed on all it had."""
    pipeline, _ = opened(rank, 2, "gloo", timeout=PATIENT)
    errors = []
    try:
        pipeline.capture()
        batch = decode_batch(4)
        if rank == 1:
            batch.positions = batch.positions.float()
        if with_block:
            with pipeline:
                pipeline.run("decode", batch)
        else:
            pipeline.run("decode", batch)
    except Exception as problem:
        errors.append(f"{type(problem).__name__}: {problem}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.close()
        pipeline.close()
    return errors, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("with_block", [True, False])
def test_a_failure_that_shows_only_at_the_end_is_not_lost(with_block: bool, tmp_path: Path) -> None:
    (errors, caught), (own, _) = values(
        run_ranks(2, ends_while_the_last_rank_fails, tmp_path, with_block)
    )
    assert len(own) == 1 and own[0].startswith("SourceError: slot positions")
    said = errors if with_block else caught
    assert len(said) == 1 and len(errors + caught) == 1
    assert "rank 1 failed in step 0: SourceError: slot positions" in said[0]


def interrupted(rank: int, where: str) -> Any:
    """Groups and graphs that are left where closing was broken off on rank 1."""
    pipeline, runner = opened(rank, 2, "gloo", timeout=PATIENT)
    pipeline.capture()
    pipeline.run("decode", decode_batch(4))
    errors = []
    if rank == 1:
        target = {"end": (pipeline._board, "exchange"), "runner": (runner, "forget_choices")}[where]
        with patch.object(*target, side_effect=KeyboardInterrupt("enough")):
            try:
                pipeline.close()
            except KeyboardInterrupt as problem:
                errors.append(str(problem))
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline.close()
        errors = [str(warning.message) for warning in caught]
    pipeline.close()
    graphs = sum(bucket.graph is not None for bucket in runner.table.values())
    return errors, graphs, len(dist.distributed_c10d._world.pg_map)


@pytest.mark.parametrize("where", ["end", "runner"])
def test_a_close_that_is_broken_off_still_lets_go(where: str, tmp_path: Path) -> None:
    outcomes = values(run_ranks(2, interrupted, tmp_path, where))
    assert [left for _, *left in outcomes] == [[0, 1], [0, 1]]  # the group of the world is left
    (there,), here = outcomes[1][0], outcomes[0][0]
    assert there == "enough"
    if where == "end":
        assert "rank 1 failed in step 1: KeyboardInterrupt: enough" in here[0]
    else:  # all ranks had met
        assert here == []


def a_slow_last_rank(rank: int) -> int:
    """Each of its steps takes most of the timeout, while the first is three batches ahead."""
    pipeline, _ = opened(rank, 3, "gloo", timeout=TIMEOUT, in_flight=3)

    def steps() -> Any:
        for _ in range(3):
            if rank == 2:
                time.sleep(0.7 * TIMEOUT)
            yield "decode", decode_batch(4)

    with pipeline:
        pipeline.capture()
        return len(list(pipeline.stream(steps())))


def test_a_slow_rank_is_waited_for_at_the_end(tmp_path: Path) -> None:
    assert values(run_ranks(3, a_slow_last_rank, tmp_path)) == [3, 3, 3]


def several_streams(rank: int) -> list[int]:
    """Ends of streams and of the pipeline follow each other."""
    pipeline, _ = opened(rank, 2, "gloo", timeout=PATIENT)
    with pipeline:
        pipeline.capture()
        return [len(list(pipeline.stream([("decode", decode_batch(2))] * n))) for n in (2, 0, 1)]


def test_streams_end_one_after_the_other(tmp_path: Path) -> None:
    assert values(run_ranks(2, several_streams, tmp_path)) == [[2, 0, 1]] * 2


def not_captured(rank: int) -> Any:
    pipeline, runner = opened(rank, 2, "gloo", timeout=PATIENT)
    assert isinstance(pipeline, Pipeline)
    pipeline.close()
    return len(dist.distributed_c10d._world.pg_map), runner.table


def test_a_pipeline_that_was_never_captured_closes(tmp_path: Path) -> None:
    assert values(run_ranks(2, not_captured, tmp_path)) == [(1, {})] * 2
