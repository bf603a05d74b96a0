"""What ranks have done before a capture, and what they report of their surroundings."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch.distributed as dist
from rank_processes import run_ranks, values
from toy_pipeline import build

from ppcgc.runtime.pipeline import Pipeline

RANKS = 3


def capture_noting(rank: int) -> list[tuple[float, str]]:
    """When this rank began each warm-up and capture, and each message of an edge before them."""
    noted: list[tuple[float, str]] = []
    send = dist.batch_isend_irecv

    def sending(operations: list[dist.P2POp]) -> list[dist.Work]:
        noted.extend((time.monotonic(), operation.op.__name__) for operation in operations)
        return send(operations)

    def progress(text: str) -> None:
        noted.append((time.monotonic(), text))
        time.sleep(0.01 * rank)  # the last rank is the slowest

    vars(dist)["batch_isend_irecv"] = sending  # in a process of its own
    built = build(rank, RANKS, names=("decode",))
    with Pipeline(list(built.runners.values()), timeout=15) as pipeline:
        pipeline.capture(progress=progress)
        return list(noted)


def test_every_edge_has_carried_a_message_before_the_first_warm_up(tmp_path: Path) -> None:
    for rank, noted in enumerate(values(run_ranks(RANKS, capture_noting, tmp_path))):
        words = [text for _, text in noted]
        first = next(n for n, text in enumerate(words) if text.startswith("warm up"))
        edges = {"irecv": rank > 0, "isend": rank < RANKS - 1}
        assert set(words[:first]) == {name for name, there in edges.items() if there}


def test_no_rank_is_a_bucket_ahead_of_another(tmp_path: Path) -> None:
    """A warm-up or capture begins when every rank has ended the one before."""
    ranks = [
        [(when, text) for when, text in noted if text.startswith(("warm up", "capture"))]
        for noted in values(run_ranks(RANKS, capture_noting, tmp_path))
    ]
    begun = [[when for when, _ in noted] for noted in ranks]
    assert len(begun[0]) == 2 * 5  # buckets of the decode runner
    for step in range(1, len(begun[0])):
        assert min(noted[step] for noted in begun) > max(noted[step - 1] for noted in begun)
    assert [text.split()[0] for _, text in ranks[0]] == ["warm"] * 5 + ["capture"] * 5


def report_with_settings(rank: int) -> str:
    os.environ |= {"NCCL_GRAPH_REGISTER": "0", "TORCH_NCCL_BLOCKING_WAIT": "1", "NCC": "no"}
    built = build(rank, 1, names=("decode",))
    with Pipeline(list(built.runners.values()), timeout=15) as pipeline:
        return str(pipeline.report())


def test_settings_that_change_a_hand_off_are_in_the_report(tmp_path: Path) -> None:
    (report,) = values(run_ranks(1, report_with_settings, tmp_path))
    assert "environment: NCCL_GRAPH_REGISTER=0 TORCH_NCCL_BLOCKING_WAIT=1\n" in report
    assert "NCC=" not in report
