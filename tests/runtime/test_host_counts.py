"""Live counts are host integers; choices are recorded with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ppcgc.runtime.choice import Choice, Reason, StepRecord, smallest
from ppcgc.runtime.counts import broken_limit, live_count, over_capacity, source_rows
from ppcgc.runtime.errors import AbsentSourceError, CapacityError, LimitError, SourceError
from ppcgc.runtime.scalars import host_flag, host_number


class Index:
    """Something that is an integer for Python."""

    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize(("value", "count"), [(0, 0), (5, 5), (np.int64(6), 6), (Index(), 7)])
def test_host_integers_are_counts(value: Any, count: int) -> None:
    found = live_count(value, "num_tokens")
    assert found == count
    assert type(found) is int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "is -1; a live count is not negative"),
        (np.int32(-2), "is -2"),
        (True, "is True"),
        (4.0, "is 4.0"),
        ("4", "is '4'"),
        (torch.tensor(4), "is a tensor on cpu; give a host integer"),
        (torch.empty((), device="meta"), "is a tensor on meta"),
        (np.array([4, 5]), "is array"),
    ],
)
def test_anything_else_is_a_source_error(value: Any, message: str) -> None:
    with pytest.raises(SourceError, match=f"batch.num_tokens {message}"):
        live_count(value, "num_tokens")


def test_a_count_that_is_none_is_absent() -> None:
    with pytest.raises(AbsentSourceError, match=r"batch\.num_tokens is None"):
        live_count(None, "num_tokens")


def test_rows_of_a_source_on_its_own_dimension() -> None:
    assert source_rows(torch.ones(3, 5), 1, "x") == 5
    assert source_rows(np.ones((3, 5)), 0, "x") == 3
    assert source_rows([1, 2, 3], 0, "x") == 3
    assert source_rows(torch.empty(0), 0, "x") == 0


def test_a_source_without_rows() -> None:
    with pytest.raises(AbsentSourceError, match=r"batch\.x is None"):
        source_rows(None, 0, "x")
    with pytest.raises(SourceError, match=r"shape \[3\], no dimension 1"):
        source_rows(torch.ones(3), 1, "x")
    with pytest.raises(SourceError, match=r"shape \[\], no dimension 0"):
        source_rows(torch.tensor(1), 0, "x")
    with pytest.raises(SourceError, match="is a int, which has no rows"):
        source_rows(3, 0, "x")
    with pytest.raises(SourceError, match="is a list, which has one dimension"):
        source_rows([[1, 2], [3, 4]], 1, "x")


def test_errors_of_a_choice_name_runner_numbers_and_line() -> None:
    limit = broken_limit("llama.prefill", "tokens >= requests", "llama.yaml:31", (2, 3))
    assert isinstance(limit, LimitError)
    for part in ("llama.prefill", "tokens >= requests", "llama.yaml:31", "(2, 3)"):
        assert part in str(limit)
    capacity = over_capacity("llama.decode", "requests", 17, 16, "llama.yaml:50")
    assert isinstance(capacity, CapacityError)
    for part in ("llama.decode", "17 live requests", "16", "llama.yaml:50"):
        assert part in str(capacity)


# ---------------------------------------------------------------- the choice


@pytest.mark.parametrize(("live", "size"), [(0, 4), (4, 4), (5, 8), (16, 16), (17, None)])
def test_the_smallest_size_not_below_live(live: int, size: int | None) -> None:
    assert smallest((4, 8, 16), live) == size


def test_a_record_prints_its_path() -> None:
    replay: Choice[tuple[int, int]] = Choice((64, 16), Reason.FITS)
    assert str(StepRecord((47, 3), replay)) == "replay 47→64"
    assert StepRecord((47, 3), replay).path == "replay"
    eager: Choice[tuple[int, int]] = Choice(None, Reason.OVER_CAPACITY, "tokens")
    assert str(StepRecord((4096, 3), eager)) == "eager 4096 (over capacity)"
    assert StepRecord((4096, 3), eager).path == "eager"


@pytest.mark.parametrize(("value", "flag"), [(np.True_, True), (np.bool_(False), False), (2, True)])
def test_a_flag_may_be_of_numpy(value: object, flag: bool) -> None:
    assert host_flag(value, "draft") is flag
    assert host_number(value, "draft") == int(value)  # type: ignore[call-overload]  # one of these


@pytest.mark.parametrize("value", [np.array([True]), "yes", 1.5])
def test_a_flag_is_one_truth(value: object) -> None:
    with pytest.raises(SourceError, match=r"batch\.draft is .*; give the scalar as an integer"):
        host_flag(value, "draft")
