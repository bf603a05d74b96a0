"""Two ranks of which one fails: over gloo, and over NCCL with every transport."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fault_scenarios import (
    AT_STEP,
    GPU,
    above_capacity,
    host_inside_cuda,
    modes,
    mute,
    nothing_left,
    out_of_memory,
    serve_with_fault,
    timeout_of,
    unequal,
)
from rank_processes import Outcome, run_ranks, values
from toy_pipeline import decode_batch, plain

#: A wait ends within the timeout, half a second to say who is at fault, one for a stuck host,
#: and what starting and printing takes on a busy machine.
SLACK = 4.0


def two_ranks(work: Any, folder: Path, where: str, *args: Any) -> list[Outcome]:
    return run_ranks(2, work, folder, *args, limit=60.0, gpus=where != "gloo")


def check_other(outcomes: list[Outcome], culprit: int, where: str, *kinds: str) -> str:
    """The rank beside the culprit has ended in time, naming it and a step near the fault."""
    other = outcomes[1 - culprit]
    assert other.kind in kinds, outcomes
    named = re.match(rf"rank {culprit} failed in step (\d+): ", other.text)
    assert named is not None, other.text
    assert AT_STEP - 2 <= int(named[1]) <= AT_STEP + 4
    after = re.search(r"\(after ([\d.]+) s\)$", other.text)
    assert after is not None and float(after[1]) < timeout_of(where) + SLACK
    return other.text


@pytest.mark.parametrize("where", modes("eager", "captured", "symmetric"))
@pytest.mark.parametrize("fault", ["dies", "is killed amid its step"])
def test_a_rank_that_dies(fault: str, where: str, tmp_path: Path) -> None:
    outcomes = two_ranks(serve_with_fault, tmp_path, where, 2, 0, fault, where)
    assert outcomes[0].kind == "DIED"
    # amid a step nothing but silence tells it of a GPU
    kinds = ("PeerError",) if fault == "dies" else ("PeerError", "HandOffTimeoutError")
    check_other(outcomes, 0, where, *kinds)


@pytest.mark.parametrize("where", modes("eager"))
def test_the_last_rank_dies(where: str, tmp_path: Path) -> None:
    outcomes = two_ranks(serve_with_fault, tmp_path, where, 2, 1, "dies", where)
    assert outcomes[1].kind == "DIED"
    check_other(outcomes, 1, where, "PeerError")


@pytest.mark.parametrize("where", modes("eager", "captured", "symmetric"))
def test_a_rank_that_hangs_amid_its_step(where: str, tmp_path: Path) -> None:
    outcomes = two_ranks(serve_with_fault, tmp_path, where, 2, 0, "hangs amid its step", where)
    check_other(outcomes, 0, where, "HandOffTimeoutError")
    # the rank itself, once it wakes, finds that the other has given up
    assert outcomes[0].kind in ("PeerError", "HandOffTimeoutError"), outcomes


@pytest.mark.parametrize("where", modes("eager"))
@pytest.mark.parametrize(("culprit", "fault"), [(1, "hangs"), (0, "hangs in its forward")])
def test_a_rank_that_hangs(culprit: int, fault: str, where: str, tmp_path: Path) -> None:
    outcomes = two_ranks(serve_with_fault, tmp_path, where, 2, culprit, fault, where)
    check_other(outcomes, culprit, where, "HandOffTimeoutError")
    assert outcomes[culprit].kind in ("PeerError", "HandOffTimeoutError"), outcomes


@pytest.mark.parametrize("where", modes("eager", "captured", "symmetric"))
def test_a_rank_that_raises(where: str, tmp_path: Path) -> None:
    outcomes = two_ranks(serve_with_fault, tmp_path, where, 2, 0, "raises", where)
    assert outcomes[0].kind == "ValueError" and outcomes[0].text.startswith("no luck")
    assert "step 2: ValueError: no luck" in check_other(outcomes, 0, where, "PeerError")


@pytest.mark.parametrize("where", modes("eager", "symmetric"))
def test_a_send_that_never_comes(where: str, tmp_path: Path) -> None:
    _, last = two_ranks(mute, tmp_path, where, where)
    assert last.kind == "HandOffTimeoutError", last
    assert last.text == (
        f"rank 0 failed in step 0: rank 1 waited {timeout_of(where):g} s for the boundary of rank 0"
    )


@pytest.mark.parametrize("where", modes("eager", "captured", "symmetric"))
def test_a_host_that_waits_inside_cuda_is_woken(where: str, tmp_path: Path) -> None:
    _, last = two_ranks(host_inside_cuda, tmp_path, where, where)
    assert last.kind == "HandOffTimeoutError", last
    assert last.text.startswith("rank 0 failed in step 1: rank 1 waited")


@pytest.mark.parametrize("where", modes("eager"))
def test_a_batch_above_capacity(where: str, tmp_path: Path) -> None:
    (first, _), (last, output) = values(two_ranks(above_capacity, tmp_path, where, where))
    assert first.startswith("CapacityError: llama.decode")
    assert last.startswith("StepRefusedError: rank 0 refused the batch of step 0: CapacityError:")
    torch.testing.assert_close(output, plain(decode_batch(4)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("where", modes("eager", "captured"))
@pytest.mark.parametrize("odd", [1])
def test_memory_that_a_rank_does_not_have_for_a_bucket(
    odd: int, where: str, tmp_path: Path
) -> None:
    made = values(two_ranks(out_of_memory, tmp_path, where, odd, where))
    for paths, _, dropped in made:
        assert paths == [
            "eager 4 (bucket dropped)",
            "eager 3 (bucket dropped)",
            "replay 2→2",
            "replay 8→8",
        ]
        (why,) = dropped.values()
        assert why.startswith(f"rank {odd}: CaptureError: capture of llama.decode"), why
        assert "memory" in why
    for size, output in zip((4, 3, 2, 8), made[1][1], strict=True):
        torch.testing.assert_close(output, plain(decode_batch(size)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("where", modes("eager"))
def test_unequal_specs_and_a_wrong_order(where: str, tmp_path: Path) -> None:
    for raised in values(two_ranks(unequal, tmp_path, where, where)):
        assert raised["spec"].startswith("AgreementError: spec: rank 0 has sha256:")
        assert "rank 1 has sha256:0123" in raised["spec"]
        assert raised["order"].startswith("AgreementError: rank 0 has layers [2, 4) of 4")


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("gloo", "none"),
        ("gloo", "raises"),
        ("gloo", "hangs amid its step"),
        *(
            pytest.param(where, fault, marks=GPU)
            for where, fault in (
                ("eager", "hangs amid its step"),
                ("captured", "hangs amid its step"),
                ("captured", "none"),
                ("symmetric", "raises"),
                ("symmetric", "hangs amid its step"),
            )
        ),
    ],
)
def test_a_closed_pipeline_leaves_no_memory_behind(where: str, fault: str, tmp_path: Path) -> None:
    expected = {"none": "served", "raises": "PeerError: rank 0 failed in step 1: ValueError"}
    first, last = values(two_ranks(nothing_left, tmp_path, where, where, fault))
    error, _, _ = last
    assert error.startswith(expected.get(fault, "HandOffTimeoutError: rank 0 failed in step 1"))
    for _, left, held in (first, last):
        assert (left["threads"], left["groups"]) == (0, 0)
        # CUDA gives memory in pieces of 2 MiB; the pipeline itself held more, NCCL's buffers most
        assert left["bytes"] <= 4 << 20, (first, last)
        assert where == "gloo" or held > 4 << 20
