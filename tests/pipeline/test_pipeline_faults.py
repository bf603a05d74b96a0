"""A rank among several that dies, hangs, raises or does something else: all others name it.

With two ranks, over gloo and NCCL: ``test_pipeline_fault_devices``.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fault_scenarios import AT_STEP, Raising, serve_with_fault, timeout_of
from rank_processes import Outcome, run_ranks, values
from toy_pipeline import build, decode_batch, plain

from ppcgc.runtime.pipeline import Pipeline

TIMEOUT = timeout_of("gloo")


@pytest.mark.parametrize(("ranks", "culprit"), [(3, 0), (4, 2)])
def test_a_rank_that_raises(ranks: int, culprit: int, tmp_path: Path) -> None:
    outcomes = run_ranks(ranks, serve_with_fault, tmp_path, ranks, culprit, "raises")
    assert outcomes[culprit].kind == "ValueError" and outcomes[culprit].text.startswith("no luck")
    for rank, outcome in enumerate(outcomes):
        if rank != culprit:
            assert outcome.kind == "PeerError", outcome
            assert f"rank {culprit} failed in step 2: ValueError: no luck" in outcome.text


@pytest.mark.parametrize(("ranks", "culprit"), [(3, 1), (4, 3)])
def test_a_rank_that_dies(ranks: int, culprit: int, tmp_path: Path) -> None:
    outcomes = run_ranks(ranks, serve_with_fault, tmp_path, ranks, culprit, "dies")
    assert outcomes[culprit].kind == "DIED"
    check_named(outcomes, culprit, "PeerError")


@pytest.mark.parametrize(("ranks", "culprit"), [(3, 0), (4, 2)])
def test_a_rank_that_hangs(ranks: int, culprit: int, tmp_path: Path) -> None:
    outcomes = run_ranks(ranks, serve_with_fault, tmp_path, ranks, culprit, "hangs")
    check_named(outcomes, culprit, "HandOffTimeoutError")
    # the rank itself, once it wakes, finds that the others have given up
    assert outcomes[culprit].kind in ("PeerError", "HandOffTimeoutError")


def check_named(outcomes: list[Outcome], culprit: int, kind: str) -> None:
    for rank, outcome in enumerate(outcomes):
        if rank == culprit:
            continue
        assert outcome.kind == kind, outcome
        assert f"rank {culprit} failed in step " in outcome.text
        step = int(outcome.text.split("in step ")[1].split(":")[0])
        # the step that was waited for: some ranks run ahead, some are behind
        assert AT_STEP - 2 <= step <= AT_STEP + 4, outcome.text


def other_batches(rank: int, kind: str) -> Any:
    built = build(rank, 2)
    with Pipeline(list(built.runners.values()), timeout=TIMEOUT) as pipeline:
        pipeline.capture()
        if kind == "rows":
            steps = [("decode", decode_batch(4 + rank))]
        elif kind == "runner":
            steps = [(("decode", "prefill")[rank], decode_batch(4))]
        else:
            steps = [("decode", decode_batch(4))] * (1 + rank)
        return len(list(pipeline.stream(steps)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("rows", "rank 0 has a batch of DecodeExtents(requests=4, tokens=4), rank 1 one of Dec"),
        ("runner", "rank 0 is at a step of decode (its step 0), rank 1 at a step of prefill"),
        ("steps", "rank 0 is at the end (its step 1), rank 1 at a step of decode"),
    ],
)
def test_ranks_that_are_called_with_other_batches(kind: str, text: str, tmp_path: Path) -> None:
    first, last = run_ranks(2, other_batches, tmp_path, kind)
    assert last.kind == "DisagreementError" and text in last.text
    assert first.kind == "PeerError" and "rank 1 failed in step" in first.text


def captures_again(rank: int) -> None:
    built = build(rank, 2, names=("decode",))
    with Pipeline(list(built.runners.values()), timeout=1.5) as pipeline:
        pipeline.capture()
        if rank == 1:
            pipeline.capture()
        pipeline.run("decode", decode_batch(4))


def test_ranks_that_wait_for_each_other_are_told_in_what(tmp_path: Path) -> None:
    """Neither is silent, so each may be at fault: the calls say what went wrong."""
    for outcome in run_ranks(2, captures_again, tmp_path):
        assert outcome.kind == "HandOffTimeoutError"
        assert "They wait for each other: " in outcome.text
        assert "rank 1 for start of the capture of rank 0" in outcome.text
        assert outcome.text.endswith("Make the same calls on all ranks")


def late_joiner(rank: int) -> Any:
    if rank == 1:
        time.sleep(3)
        return None
    built = build(rank, 3, layers=3, names=("decode",))
    Pipeline(list(built.runners.values()), timeout=1.0)


def test_a_rank_that_never_opens_its_pipeline(tmp_path: Path) -> None:
    first, _, last = run_ranks(3, late_joiner, tmp_path)
    for outcome in (first, last):
        assert outcome.kind == "HandOffTimeoutError"
        assert outcome.text == (
            "rank 1 failed in the set-up: gave no terms of the pipeline within 1 s"
        )


def after_a_failure(rank: int) -> Any:
    built = build(rank, 2, names=("decode",), model=Raising)
    runner = built.runners["decode"]
    pipeline = Pipeline([runner], timeout=TIMEOUT)
    pipeline.capture()
    errors = []
    for _ in range(2):
        try:
            pipeline.run("decode", decode_batch(19))
        except Exception as problem:
            errors.append(f"{type(problem).__name__}: {problem}")
    pipeline.close()
    pipeline.close()
    groups = len(dist.distributed_c10d._world.pg_map)
    graphs = sum(bucket.graph is not None for bucket in runner.table.values())
    threads = sum(thread.name != "MainThread" for thread in threading.enumerate())
    return errors, groups, graphs, threads


def test_a_broken_pipeline_stays_broken_and_leaves_nothing_behind(tmp_path: Path) -> None:
    for rank, (errors, groups, graphs, threads) in enumerate(
        values(run_ranks(2, after_a_failure, tmp_path))
    ):
        assert errors[1].startswith("PeerError: the pipeline has ended: "), (rank, errors)
        assert (groups, graphs, threads) == (1, 0, 0)  # the group of the world is the caller's


def destroys_the_group(rank: int) -> None:
    built = build(rank, 2, names=("decode",))
    pipeline = Pipeline(list(built.runners.values()), timeout=TIMEOUT)
    pipeline.capture()
    pipeline.run("decode", decode_batch(3))
    if rank == 0:
        dist.destroy_process_group()
    for _ in range(4):
        pipeline.run("decode", decode_batch(3))


def test_a_group_that_is_destroyed_under_a_pipeline(tmp_path: Path) -> None:
    first, last = run_ranks(2, destroys_the_group, tmp_path)
    assert first.kind == "BuildError"
    assert "close the pipeline before `destroy_process_group`" in first.text
    assert last.kind == "PeerError" and "rank 0 failed in step" in last.text


def given_up(rank: int) -> None:
    """Rank 0 comes when the other has given it up; it need not wait once more."""
    built = build(rank, 2, names=("decode",))
    if rank == 0:
        time.sleep(3)
    start = time.monotonic()
    try:
        Pipeline(list(built.runners.values()), timeout=1.0 if rank else 20.0)
    except Exception as problem:
        raise type(problem)(f"{problem} (after {time.monotonic() - start:.1f} s)") from None


def test_a_rank_that_was_given_up_is_told_at_once(tmp_path: Path) -> None:
    late, other = run_ranks(2, given_up, tmp_path)
    assert late.kind == other.kind == "HandOffTimeoutError"
    assert late.text.startswith("rank 0 failed in the set-up: gave no terms of the pipeline")
    assert float(late.text.rpartition("after ")[2].removesuffix(" s)")) < 15


def one_after_the_other(rank: int) -> Any:
    outputs = []
    for _ in range(2):
        pipeline = Pipeline([build(rank, 2, names=("decode",)).runners["decode"]], timeout=TIMEOUT)
        pipeline.capture()
        made = pipeline.run("decode", decode_batch(2))
        outputs.append(None if made is None else made.hidden_states.clone())
        pipeline.close()
        pipeline.close()
    return outputs, len(dist.distributed_c10d._world.pg_map)


def test_pipelines_one_after_the_other(tmp_path: Path) -> None:
    (_, groups), (outputs, _) = values(run_ranks(2, one_after_the_other, tmp_path))
    assert groups == 1
    for output in outputs:
        torch.testing.assert_close(output, plain(decode_batch(2)), atol=1e-5, rtol=0)
