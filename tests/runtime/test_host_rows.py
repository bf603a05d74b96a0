"""Host sources into their rows of the host block: what is taken, what is refused, what is left."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from ppcgc.runtime import host_rows
from ppcgc.runtime.errors import AbsentSourceError, SourceError
from ppcgc.runtime.host_rows import HostRows
from ppcgc.runtime.host_sources import as_host_tensor, spread

PADDING = -7


def rows(*shape: int, dtype: torch.dtype = torch.int64, dim: int = 0) -> HostRows:
    """Rows of a slot called ``slot``, holding padding everywhere."""
    return HostRows("slot", torch.full(shape, PADDING, dtype=dtype), dim)


# ---------------------------------------------------------------- kinds of source


@pytest.mark.parametrize(
    "source",
    [
        torch.tensor([1, 2, 3]),
        torch.tensor([1, 0, 2, 0, 3, 0])[::2],  # not contiguous
        np.array([1, 2, 3]),
        np.array([1, 0, 2, 0, 3, 0])[::2],
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
    ],
    ids=["tensor", "strided", "array", "strided array", "list", "tuple", "range"],
)
def test_every_kind_of_source_fills_the_live_rows_only(source: Any) -> None:
    slot = rows(5)
    slot.put(source, 3)
    assert slot.tensor.tolist() == [1, 2, 3, PADDING, PADDING]


def test_a_read_only_array_is_taken_without_a_warning() -> None:
    source = np.array([4, 5])
    source.setflags(write=False)
    slot = rows(3)
    slot.put(source, 2)
    assert slot.tensor.tolist() == [4, 5, PADDING]


@pytest.mark.parametrize("step", [2, -1, -2])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "float32"])
def test_a_strided_array_is_read_by_its_own_order(dtype: str, step: int) -> None:
    source = np.array([5, 6, 7, 8], dtype=dtype)[::step]
    live = len(source)
    wanted = {2: [5, 7], -1: [8, 7, 6, 5], -2: [8, 6]}[step]
    slot = rows(5, dtype=getattr(torch, dtype))
    slot.put(source, live)
    assert slot.tensor.tolist() == wanted + [PADDING] * (5 - live)
    assert as_host_tensor(source, slot.tensor.dtype, "slot").tolist() == wanted


@pytest.mark.parametrize("source", [np.array([1, 2, 3]), [1, 2, 3], torch.tensor([1, 2, 3])])
def test_more_live_rows_than_the_bucket_has_are_refused_whatever_their_number(source: Any) -> None:
    slot = rows(3)
    with pytest.raises(SourceError, match="4 live rows, the bucket has 3"):
        slot.put(source, 4)
    assert slot.tensor.tolist() == [PADDING] * 3


def test_bytes_are_text_and_no_rows() -> None:
    with pytest.raises(SourceError, match="is a bytes"):
        rows(3, dtype=torch.uint8).put(b"123", 3)


@pytest.mark.parametrize("live_rows", [4, 256, 300])
def test_the_last_value_of_a_long_slot_is_checked_like_the_first(live_rows: int) -> None:
    slot = rows(512)
    slot.put(np.arange(live_rows), live_rows)
    slot.check_index(live_rows, live_rows)
    slot.check_bounded(live_rows, live_rows - 1)
    with pytest.raises(SourceError, match=f"run from 0 to {live_rows - 1}, legal are 0 to"):
        slot.check_index(live_rows, live_rows - 1)
    slot.put(np.arange(live_rows) - 1, live_rows)
    with pytest.raises(SourceError, match="run from -1"):
        slot.check_index(live_rows, live_rows)
    slot.check_write_index(live_rows, live_rows, skips_negative=True)
    with pytest.raises(SourceError, match="run from -1"):
        slot.check_write_index(live_rows, live_rows, skips_negative=False)


@pytest.mark.parametrize(
    "array",
    [np.array([1, 2], dtype=">i8"), np.array([1, "a"], dtype=object)],
    ids=["big endian", "objects"],
)
def test_an_array_that_torch_cannot_read_is_a_source_error(array: Any) -> None:
    with pytest.raises(SourceError, match="slot slot: the array cannot be read"):
        rows(2).put(array, 2)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "the source is None"),
        (3, "is a int"),
        ("12", "is a str"),
        ({1, 2}, "is a set"),
        ([1.0, 2.0], "row 0 of the source is 1.0"),
        ([1, None], "row 1 of the source is None"),
        ([1, 2**70], "does not fit into int64"),
        (torch.tensor([1, 2], dtype=torch.int32), "torch.int32, the slot is torch.int64"),
        (torch.tensor([1, 2, 3]), r"shape \[3\], the live rows need \[2\]"),
        (torch.tensor([[1, 2]]), r"shape \[1, 2\], the live rows need \[2\]"),
        (torch.tensor([1]), r"shape \[1\], the live rows need \[2\]"),
        (torch.empty(2, dtype=torch.int64, device="meta"), "is on meta"),
    ],
)
def test_a_wrong_source_names_the_slot_and_writes_nothing(source: Any, message: str) -> None:
    slot = rows(4)
    with pytest.raises(SourceError, match=f"slot slot: .*{message}"):
        slot.put(source, 2)
    assert slot.tensor.tolist() == [PADDING] * 4


def test_none_has_an_error_of_its_own() -> None:
    with pytest.raises(AbsentSourceError, match="absent:"):
        rows(4).put(None, 0)


def test_integers_of_a_list_must_fit_the_dtype() -> None:
    with pytest.raises(SourceError, match=r"values 1 to 300 do not fit into torch\.int8"):
        rows(4, dtype=torch.int8).put([1, 300], 2)


def test_a_list_cannot_feed_a_float_slot() -> None:
    with pytest.raises(SourceError, match="needs a tensor or an array"):
        rows(4, dtype=torch.float32).put([1, 2], 2)


@pytest.mark.parametrize("source", [torch.tensor([1, 2]).int(), np.array([1, 2], dtype=np.int32)])
def test_cast_takes_another_dtype_of_any_kind(source: Any) -> None:
    slot = rows(3)
    slot.put(source, 2, cast=True)
    assert slot.tensor.tolist() == [1, 2, PADDING]
    assert as_host_tensor(source, torch.int64, "slot", cast=True).dtype == torch.int64


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize("source", [[True, False], (1, True)])
def test_truths_are_no_integers(source: Any) -> None:
    with pytest.raises(SourceError, match=r"row [01] of the source is True, not an integer"):
        rows(3).put(source, 2)
    slot = HostRows("slot", torch.zeros(2, dtype=torch.bool), 0)
    slot.put([True, False], 2)
    assert slot.tensor.tolist() == [True, False]


def test_more_live_rows_than_the_bucket_has_is_an_error() -> None:
    with pytest.raises(SourceError, match="5 live rows, the bucket has 4"):
        rows(4).put(torch.arange(5), 5)


def test_live_zero_leaves_the_padding() -> None:
    slot = rows(3)
    slot.put(torch.empty(0, dtype=torch.int64), 0)
    assert slot.tensor.tolist() == [PADDING] * 3


def test_the_padded_dimension_may_stand_anywhere() -> None:
    slot = rows(2, 4, dim=1)
    slot.put(torch.tensor([[1, 2], [3, 4]]), 2)
    assert slot.tensor.tolist() == [[1, 2, PADDING, PADDING], [3, 4, PADDING, PADDING]]
    with pytest.raises(SourceError, match=r"\[2, 3\], the live rows need \[2, 2\]"):
        slot.put(torch.zeros(2, 3, dtype=torch.int64), 2)


def test_rows_of_several_elements() -> None:
    slot = rows(3, 2)
    slot.put(torch.tensor([[1, 2]]), 1)
    assert slot.tensor.tolist() == [[1, 2], [PADDING] * 2, [PADDING] * 2]
    with pytest.raises(SourceError, match=r"\[1, 3\], the live rows need \[1, 2\]"):
        slot.put(torch.zeros(1, 3, dtype=torch.int64), 1)


def test_a_slot_without_a_padded_dimension_is_taken_whole() -> None:
    slot = rows(2)
    slot.put_whole([8, 9])
    assert slot.tensor.tolist() == [8, 9]
    with pytest.raises(SourceError, match=r"\[1\], the slot has \[2\]"):
        slot.put_whole([8])
    slot.put_whole(torch.tensor([1, 2]).int(), cast=True)
    assert slot.tensor.tolist() == [1, 2]


# ---------------------------------------------------------------- what is not copied


def test_one_value_for_live_for_padded_and_for_all_rows() -> None:
    slot = rows(2, 3, dim=1)
    slot.set_live(1, 4)
    slot.pad_fill(1, 5)
    assert slot.tensor.tolist() == [[4, 5, 5], [4, 5, 5]]
    slot.set_all(6)
    assert slot.tensor.tolist() == [[6, 6, 6], [6, 6, 6]]


def test_computed_rows_are_equal_in_all_elements_of_a_row() -> None:
    slot = rows(3, 2)
    slot.set_rows([1, 2, 3])
    assert slot.tensor.tolist() == [[1, 1], [2, 2], [3, 3]]
    square = rows(2, 2, dim=1)
    square.set_rows([1, 2])
    assert square.tensor.tolist() == [[1, 2], [1, 2]]


def test_a_computed_value_that_does_not_fit_is_a_source_error() -> None:
    with pytest.raises(SourceError, match=r"does not fit into torch\.uint8"):
        spread("slot", [300], torch.empty(1, dtype=torch.uint8), 0)


@pytest.mark.parametrize(("dtype", "value"), [(torch.int8, 300), (torch.uint8, -1)])
@pytest.mark.parametrize("count", [1, 3])
def test_one_value_for_all_rows_must_fit_too(dtype: torch.dtype, value: int, count: int) -> None:
    slot = HostRows("slot", torch.zeros(count, dtype=dtype), 0)
    for write in (slot.set_all, lambda one: slot.pad_fill(0, one)):
        with pytest.raises(SourceError, match="slot slot: a computed value does not fit"):
            write(value)
    assert slot.tensor.tolist() == [0] * count


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.float32])
def test_repeat_last_copies_the_last_live_row(dtype: torch.dtype) -> None:
    slot = HostRows("slot", torch.full((5,), PADDING, dtype=dtype), 0)
    slot.put(torch.tensor([1, -2]).to(dtype), 2)
    slot.pad_repeat_last(2)
    assert slot.tensor.tolist() == [1, -2, -2, -2, -2]


def test_repeat_last_copies_the_last_live_slab() -> None:
    slot = rows(4, 2)
    slot.put(torch.tensor([[1, 2], [3, 4]]), 2)
    slot.pad_repeat_last(2)
    assert slot.tensor.tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]
    turned = rows(2, 3, dim=1)
    turned.put(torch.tensor([[1], [2]]), 1)
    turned.pad_repeat_last(1)
    assert turned.tensor.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_repeat_last_of_a_full_and_of_an_empty_slot_changes_nothing() -> None:
    slot = rows(2)
    slot.put([1, 2], 2)
    slot.pad_repeat_last(2)
    assert slot.tensor.tolist() == [1, 2]
    empty = rows(2)
    empty.pad_repeat_last(0)
    assert empty.tensor.tolist() == [PADDING, PADDING]


# ---------------------------------------------------------------- roles look at live rows only


def live(*values: int) -> HostRows:
    """Live values, then one row of padding that no role allows."""
    slot = rows(len(values) + 1)
    slot.put(list(values), len(values))
    return slot


@pytest.fixture(params=["numpy", "without"])
def _numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setattr(host_rows, "_array_of", lambda tensor, ints: None)


@pytest.mark.usefixtures("_numpy")
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8])
@pytest.mark.parametrize("count", [host_rows.FEW, host_rows.FEW + 1])
def test_every_value_at_every_row_is_checked(dtype: torch.dtype, count: int) -> None:
    """All rows at once, so that none hides behind its neighbours: beside the extremes, too.

    A table may be longer than the slot's dtype can say.
    """
    most, least = torch.iinfo(dtype).max, torch.iinfo(dtype).min
    for limit in (1, 5, most, 2 * most + 2):
        near = {least, -1, 0, limit - 1, limit, most}
        odd = {one for one in near if least <= one <= most}
        for value, others, at in itertools.product(odd, odd, range(count)):
            values = [others] * count
            values[at] = value
            slot = HostRows("x", torch.zeros(count + 2, dtype=dtype), 0)
            slot.put(values, count)
            with refused(any(not 0 <= one < limit for one in values)):
                slot.check_index(count, limit)
            with refused(any(not 0 <= one < limit for one in values)):
                slot.check_write_index(count, limit, skips_negative=False)
            with refused(any(one >= limit for one in values)):
                slot.check_write_index(count, limit, skips_negative=True)
            with refused(any(not 0 <= one <= limit for one in values)):
                slot.check_bounded(count, limit)


def refused(wrong: bool) -> AbstractContextManager[object]:
    return pytest.raises(SourceError, match="slot x") if wrong else nullcontext()


def test_an_array_whose_buffer_python_cannot_name_is_a_source_error() -> None:
    with pytest.raises(SourceError, match="slot slot: the array cannot be read"):
        rows(3).put(np.array(["2026-11-30"] * 2, dtype="M8[D]"), 2)


def test_index_role() -> None:
    live(0, 4).check_index(2, 5)
    for values in ((0, 5), (-1, 4)):
        with pytest.raises(SourceError, match="legal are 0 to 4"):
            live(*values).check_index(2, 5)
    rows(3).check_index(0, 5)


def test_write_index_role() -> None:
    live(0, 4).check_write_index(2, 5, skips_negative=False)
    live(-1, 4).check_write_index(2, 5, skips_negative=True)
    with pytest.raises(SourceError, match="rows 0 to 4"):
        live(-1, 4).check_write_index(2, 5, skips_negative=False)
    with pytest.raises(SourceError, match="rows 0 to 4"):
        live(-1, 5).check_write_index(2, 5, skips_negative=True)


def test_offsets_role() -> None:
    live(0, 3, 3, 7).check_offsets(4, 7, closed=True)
    live(0, 3).check_offsets(2, 7, closed=False)
    live(0).check_offsets(1, 0, closed=True)  # no requests
    rows(3).check_offsets(0, 7, closed=False)
    for values, closed in [
        ((1, 7), True),
        ((0, 6), True),
        ((0, 8), True),
        ((0, 5, 4, 7), True),
        ((0, 8), False),
        ((-1, 0), False),
    ]:
        with pytest.raises(SourceError, match="offsets"):
            live(*values).check_offsets(len(values), 7, closed=closed)


def test_lengths_whose_sum_comes_round_are_refused() -> None:
    many = rows(300)
    many.put([2**62] * 4 + [0] * 296, 300)
    with pytest.raises(SourceError, match="add up to"):
        many.check_lengths(300, 0)


def test_lengths_role() -> None:
    live(3, 0, 4).check_lengths(3, 7)
    rows(3).check_lengths(0, 0)
    for values in ((3, 5), (8, -1)):
        with pytest.raises(SourceError, match="add up to"):
            live(*values).check_lengths(2, 7)
    live(0, 7).check_bounded(2, 7)
    for values in ((0, 8), (-1, 7)):
        with pytest.raises(SourceError, match="legal are 0 to 7"):
            live(*values).check_bounded(2, 7)
