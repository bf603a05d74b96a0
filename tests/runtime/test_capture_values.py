"""The batch of a capture is legal for kernels, whatever the live counts are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ppcgc.runtime import roles
from ppcgc.runtime.errors import DimError
from ppcgc.runtime.slot_info import Role, SlotInfo, capture_batch, even_offsets

CPU = torch.device("cpu")


def info(name: str, **words: Any) -> SlotInfo:
    facts: dict[str, Any] = {
        "line": "x.yaml:1", "axes": ("requests",), "dtype": torch.int32, "padding": "zero",
        "batch": name, "host": True,
    }  # fmt: skip
    return SlotInfo(name=name, **{**facts, **words})


OFFSETS = info("offsets", role=Role.OFFSETS, of_axis="tokens")
STARTS = info("starts", role=Role.OFFSETS, of_axis="tokens")
LENGTHS = info("lengths", role=Role.LENGTHS, of_axis="tokens")


def batch_for(*table: SlotInfo, tokens: int, requests: int, **words: Any) -> Any:
    shapes: dict[str, tuple[int, ...]] = {
        "offsets": (requests + 1,), "starts": (requests,), "lengths": (requests,),
    }  # fmt: skip
    return capture_batch(
        table,
        {**{slot.name: (tokens,) for slot in table}, **shapes, **words.pop("shapes", {})},
        {"tokens": tokens, "requests": requests},
        words.pop("counts", {"tokens": "num_tokens", "requests": "num_requests"}),
        words.pop("fills", {}),
        torch.float16,
        CPU,
    )


@given(st.integers(0, 300), st.integers(1, 20))
def test_offsets_and_lengths_are_spread_evenly(tokens: int, requests: int) -> None:
    batch = batch_for(OFFSETS, STARTS, LENGTHS, tokens=tokens, requests=requests)
    roles.check_offsets("offsets", batch.offsets, tokens, closed=True)
    roles.check_offsets("starts", batch.starts, tokens, closed=False)
    roles.check_lengths("lengths", batch.lengths, tokens)
    assert int(batch.lengths.max()) - int(batch.lengths.min()) <= 1
    assert batch.starts.tolist() == batch.offsets.tolist()[:-1]
    assert (batch.offsets[1:] - batch.offsets[:-1]).tolist() == batch.lengths.tolist()
    if tokens >= requests:
        assert int(batch.lengths.min()) >= 1  # a request with no token is no request


def test_offsets_by_hand() -> None:
    assert even_offsets(7, 3) == [0, 2, 4, 7]
    assert even_offsets(0, 2) == [0, 0, 0]
    assert even_offsets(5, 0) == [0]


def test_other_roles() -> None:
    table = (
        info("index", role=Role.INDEX, dtype=torch.int64),
        info("bounded", role=Role.LENGTHS),
        info("mask", role=Role.MASK, dtype=torch.bool),
        info("data", dtype=None),
        info("written", role=Role.WRITE_INDEX, dtype=torch.int64),
    )
    batch = batch_for(*table, tokens=3, requests=2, fills={"written": 5})
    assert batch.index.tolist() == [0, 0, 0]
    assert batch.bounded.tolist() == [1, 1, 1]
    assert batch.mask.tolist() == [True] * 3
    assert batch.written.tolist() == [5, 5, 5]  # the reserved row
    assert batch.data.dtype == torch.float16  # the model's own
    assert (batch.num_tokens, batch.num_requests) == (3, 2)


def test_a_fill_of_the_spec_wins_over_the_role() -> None:
    assert batch_for(LENGTHS, tokens=4, requests=2, fills={"lengths": 9}).lengths.tolist() == [9, 9]


def test_paths_make_nested_batches() -> None:
    slots = (info("ids", batch="mm.ids"), info("grid", batch="mm.grid", host=False))
    batch = batch_for(*slots, tokens=2, requests=1, counts={"tokens": "mm.count"})
    assert batch.mm.ids.tolist() == batch.mm.grid.tolist() == [0, 0]
    assert batch.mm.count == 2
    assert batch.num_requests is None  # nothing gives it: absent, not an error


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_slots_of_one_path_the_uncast_one_decides(order: int) -> None:
    slots = (
        info("ids", batch="ids", dtype=torch.int64),
        info("narrow", batch="ids", dtype=torch.int32, cast=True),
    )[::order]
    assert batch_for(*slots, tokens=2, requests=1).ids.dtype == torch.int64


def test_slots_without_a_batch_source_are_left_out() -> None:
    batch = batch_for(info("computed", batch=None), tokens=2, requests=1)
    assert batch.computed is None


def test_a_path_through_a_source_is_an_error() -> None:
    with pytest.raises(DimError, match=r"batch.ids is a source itself"):
        batch_for(info("ids"), info("grid", batch="ids.grid"), tokens=2, requests=1)
