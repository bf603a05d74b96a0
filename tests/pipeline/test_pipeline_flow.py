"""How steps flow: in place, one message a cut, ranks on different batches at once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from rank_processes import run_ranks, values
from toy_pipeline import build, decode_batch, plain, prefill_batch

from ppcgc.runtime.errors import TransportError
from ppcgc.runtime.pipeline import Pipeline
from ppcgc.runtime.pipeline.groups import nccl_leaves_errors_to_us
from ppcgc.runtime.pipeline.transport import check_transports


def messages_of_steps(rank: int) -> Any:
    """For each step: where a replay's messages begin in memory, and where its slots are."""
    messages: list[tuple[str, int]] = []
    post = dist.batch_isend_irecv

    def posting(operations: list[dist.P2POp]) -> list[dist.Work]:
        messages.extend((op.op.__name__, op.tensor.data_ptr()) for op in operations)
        return post(operations)

    vars(dist)["batch_isend_irecv"] = posting  # in a process of its own
    built = build(rank, 3, layers=3)
    with Pipeline(list(built.runners.values()), in_flight=1, timeout=15) as pipeline:
        pipeline.capture()
        seen = []
        for name, batch in (("prefill", prefill_batch([47])), ("decode", decode_batch(3))):
            messages.clear()
            pipeline.run(name, batch)
            runner = built.runners[name]
            bucket = runner.table[runner.last_step.choice.padded]
            slots = {
                "irecv": [bucket.boundary[key].data_ptr() for key in bucket.boundary or ()],
                "isend": []
                if rank == 2
                else [bucket.outputs[key].data_ptr() for key in bucket.outputs],
            }
            seen.append((list(messages), slots))
        return seen


def test_all_keys_of_a_cut_go_as_one_block_from_slot_to_slot(tmp_path: Path) -> None:
    """The message is the slots: its memory begins where the first key's does, nothing is copied."""
    for rank, seen in enumerate(values(run_ranks(3, messages_of_steps, tmp_path))):
        ways = [way for way, there in (("irecv", rank > 0), ("isend", rank < 2)) if there]
        for messages, slots in seen:
            assert [way for way, _ in messages] == ways
            for way, address in messages:
                assert len(slots[way]) == 2  # hidden states and residual
                assert address == min(slots[way])


SLOW, STEPS = 0.1, 6


def stream_slowly(rank: int) -> Any:
    """When this rank's stage began and ended each step; two runners, other buckets each time."""
    built = build(rank, 3, layers=3)
    steps = [
        ("decode", decode_batch(1 + number, seed=number))
        if number % 2
        else ("prefill", prefill_batch([10 * (number + 1)], seed=number))
        for number in range(STEPS)
    ]
    times: list[tuple[float, float]] = []
    for runner in built.runners.values():
        runner.finish = slowly(runner.finish, times)
    with Pipeline(list(built.runners.values()), in_flight=2, timeout=15) as pipeline:
        pipeline.capture()
        outputs = [
            None if made is None else made.hidden_states.clone() for made in pipeline.stream(steps)
        ]
    return times, outputs, steps


def slowly(finish: Any, times: list[tuple[float, float]]) -> Any:
    def run(step: Any) -> Any:
        begun = time.monotonic()
        time.sleep(SLOW)
        outputs = finish(step)
        times.append((begun, time.monotonic()))
        return outputs

    return run


def test_ranks_are_busy_with_different_batches_at_once(tmp_path: Path) -> None:
    """The first rank is at the next batch before the last is through with this one."""
    made = values(run_ranks(3, stream_slowly, tmp_path))
    first, last = made[0][0], made[2][0]
    assert len(first) == len(last) == STEPS
    for (begun, _), (_, ended) in zip(first[1:], last[:-1], strict=True):
        assert begun < ended
    for (_, batch), output in zip(made[2][2], made[2][1], strict=True):
        torch.testing.assert_close(output, plain(batch, layers=3), atol=1e-5, rtol=0)


def declared(rank: int) -> str:
    """The spec's own word counts, and what the build says instead of it."""
    runner = build(rank, 2, names=("decode",)).runners["decode"]
    type(runner).transport = "captured"
    try:
        Pipeline([runner], timeout=5)
    except TransportError as problem:
        refused = str(problem)
    with Pipeline([build(rank, 2, names=("decode",)).runners["decode"]], transport="eager") as made:
        return f"{refused} / {made.report().transports}"


def test_a_transport_is_declared_by_the_spec_and_overridden_at_build(tmp_path: Path) -> None:
    for said in values(run_ranks(2, declared, tmp_path)):
        assert said.startswith("transport captured needs GPUs and NCCL, the stage is on cpu")
        assert said.endswith("/ ('eager',)")


def test_nvlink_multicast_stays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCCL_NVLS_ENABLE", raising=False)
    check_transports(["eager"], torch.device("cpu"))
    assert "NCCL_NVLS_ENABLE" not in os.environ
    check_transports(["captured"], torch.device("cuda"))
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"


@pytest.mark.parametrize("before", [None, "3"])
def test_other_groups_keep_their_error_handling(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
    monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv(name, before)
    with nccl_leaves_errors_to_us():
        assert os.environ[name] == "0"
    assert os.environ.get(name) == before
