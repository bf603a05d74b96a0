"""Device sources: exact copies, resets of the rest, and slots of eager steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ppcgc.runtime.eager_rows import EagerRows
from ppcgc.runtime.errors import AbsentSourceError, SourceError
from ppcgc.runtime.loading import (
    copy_rows,
    copy_whole,
    fill_live,
    fill_whole,
    pad_fill,
    pad_repeat_last,
    pad_zero,
    upload_rows,
    upload_whole,
)
from ppcgc.runtime.slot_info import SlotInfo

CPU = torch.device("cpu")
STALE = 77.0


def stale(*shape: int) -> Tensor:
    """A slot full of an earlier batch."""
    return torch.full(shape, STALE)


# ---------------------------------------------------------------- copies


def test_live_rows_are_copied_and_the_rest_is_left_to_the_padding() -> None:
    slot = stale(4, 2)
    copy_rows(slot, torch.tensor([[1.0, 2.0]]), 1, "x")
    assert slot.tolist() == [[1, 2], [STALE] * 2, [STALE] * 2, [STALE] * 2]


def test_the_padded_dimension_is_the_declared_one() -> None:
    """A copy into the first rows of dimension 0 would be wrong for ``[3, tokens]``."""
    slot = stale(3, 4)
    source = torch.arange(6.0).view(3, 2)
    copy_rows(slot, source, 2, "x", dim=1)
    pad_zero(slot, 2, dim=1)
    assert torch.equal(slot, torch.tensor([[0.0, 1, 0, 0], [2, 3, 0, 0], [4, 5, 0, 0]]))


def test_a_reset_of_rows_does_not_touch_columns() -> None:
    slot = stale(3, 4)
    copy_rows(slot, torch.ones(2, 4), 2, "x")
    pad_fill(slot, 2, 5)
    assert slot.tolist() == [[1] * 4, [1] * 4, [5] * 4]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "the source is None"),
        ([1.0, 2.0], "is a list, not a tensor"),
        (np.ones(2, dtype=np.float32), "is a ndarray, not a tensor"),
        (torch.ones(3), r"shape \[3\], the live rows need \[2\]"),
        (torch.ones(1), r"shape \[1\], the live rows need \[2\]"),
        (torch.ones(1, 2), r"shape \[1, 2\], the live rows need \[2\]"),
        (torch.ones(2, dtype=torch.float64), "torch.float64, the slot is torch.float32"),
        (torch.ones(2, device="meta"), "is on meta, the stage on cpu"),
        (torch.ones(2, requires_grad=True), "requires grad"),
        (torch.ones(2).to_sparse(), "is a torch.sparse_coo tensor; give a dense one"),
    ],
)
def test_a_wrong_source_is_refused_before_anything_is_written(source: Any, message: str) -> None:
    slot = stale(4)
    with pytest.raises(SourceError, match=f"slot x: .*{message}"):
        copy_rows(slot, source, 2, "x")
    assert slot.tolist() == [STALE] * 4


def test_more_live_rows_than_padded_ones() -> None:
    with pytest.raises(SourceError, match="slot x: 5 live rows, the bucket has 4"):
        copy_rows(stale(4), torch.ones(5), 5, "x")


def test_cast_is_explicit() -> None:
    slot = stale(2)
    copy_rows(slot, torch.tensor([1, 2]), 2, "x", cast=True)
    assert slot.tolist() == [1, 2]
    copy_whole(slot, torch.tensor([3, 4]), "x", cast=True)
    assert slot.tolist() == [3, 4]


def test_slots_without_a_padded_axis() -> None:
    slot = stale(2)
    copy_whole(slot, torch.tensor([1.0, 2.0]), "x")
    assert slot.tolist() == [1, 2]
    with pytest.raises(AbsentSourceError):
        copy_whole(slot, None, "x")
    with pytest.raises(SourceError, match=r"\[1\], the live rows need \[2\]"):
        copy_whole(slot, torch.ones(1), "x")
    fill_whole(slot, 3)
    assert slot.tolist() == [3, 3]


def test_host_sources_of_slots_with_one_address() -> None:
    slot = stale(3)
    rows = upload_rows(slot, np.array([1, 2], dtype=np.float32), 2, "x")
    assert slot.tolist() == [1, 2, STALE]
    assert rows.tolist() == [1, 2]
    with pytest.raises(SourceError, match=r"\[2\], the live rows need \[1\]"):
        upload_rows(slot, torch.ones(2), 1, "x")
    upload_rows(slot, torch.tensor([5]), 1, "x", cast=True)
    assert slot.tolist() == [5, 2, STALE]
    whole = torch.zeros(2, dtype=torch.int64)
    assert upload_whole(whole, [8, 9], "x").tolist() == whole.tolist() == [8, 9]
    with pytest.raises(SourceError, match="live rows need"):
        upload_whole(whole, [8], "x")


# ---------------------------------------------------------------- the other rows


def test_repeat_last_on_a_device_slot() -> None:
    slot = stale(4, 2)
    copy_rows(slot, torch.tensor([[1.0, 2], [3, 4]]), 2, "x")
    pad_repeat_last(slot, 2)
    assert slot.tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]
    pad_repeat_last(slot, 0)
    assert slot.tolist() == [[0, 0]] * 4
    full = stale(2)
    pad_repeat_last(full, 2)
    assert full.tolist() == [STALE] * 2


def test_resets_of_nan_rows() -> None:
    slot = torch.full((3,), float("nan"))
    copy_rows(slot, torch.ones(1), 1, "x")
    pad_zero(slot, 1)
    assert slot.tolist() == [1, 0, 0]


def test_absent_fill_writes_live_rows_alone() -> None:
    slot = stale(2, 3)
    fill_live(slot, 1, 4, dim=1)
    assert slot.tolist() == [[4, STALE, STALE]] * 2


# ---------------------------------------------------------------- eager steps


def info(name: str, dtype: torch.dtype | None, *, mutable: bool = False) -> SlotInfo:
    return SlotInfo(
        name=name, line="x.yaml:1", axes=(), dtype=dtype, padding="none", mutable=mutable
    )


def eager_rows() -> EagerRows:
    table = (
        info("device", None),
        info("host", torch.int64),
        info("wide", torch.int32),
        info("written", torch.float32, mutable=True),
    )
    shapes: dict[str, tuple[int, ...]] = {
        "device": (2,), "host": (2,), "wide": (2, 3), "written": (2,),
    }  # fmt: skip
    return EagerRows(table, shapes, torch.float32, CPU)


def test_eager_rows_are_the_batch_s_own() -> None:
    source = torch.ones(2)
    assert eager_rows().own("device", source) is source
    ids = torch.tensor([1, 2])
    assert eager_rows().upload("host", ids).data_ptr() == ids.data_ptr()
    assert eager_rows().own("written", source).data_ptr() != source.data_ptr()


def test_eager_rows_are_checked_as_a_load_checks_them() -> None:
    rows = eager_rows()
    on_device: list[Any] = [None, torch.ones(3), torch.ones(2).double(), [1, 2]]
    for wrong in on_device:
        with pytest.raises(SourceError, match="slot device"):
            rows.own("device", wrong)
    on_host: list[Any] = [None, [1], [1, 2.0], torch.ones(2), "12"]
    for wrong in on_host:
        with pytest.raises(SourceError, match="slot host"):
            rows.upload("host", wrong)
    assert rows.upload("host", torch.tensor([1, 2]).int(), cast=True).dtype == torch.int64
    assert rows.own("device", torch.tensor([1, 2]), cast=True).tolist() == [1, 2]


def test_absent_in_an_eager_step() -> None:
    rows = eager_rows()
    assert rows.own("device", None, absent=3).tolist() == [3, 3]
    assert rows.upload("host", None, absent=4).tolist() == [4, 4]
    assert rows.own_if_given("device", None) is None
    assert rows.upload_if_given("host", None) is None
    given = rows.upload_if_given("host", [5, 6])
    assert given is not None
    assert given.tolist() == [5, 6]


def test_computed_rows_spread_over_the_elements_of_a_row() -> None:
    rows = eager_rows()
    assert rows.computed("wide", [1, 2]).tolist() == [[1] * 3, [2] * 3]
    assert rows.computed("wide", [1, 2, 3], dim=1).tolist() == [[1, 2, 3]] * 2
    assert rows.filled("wide", 4).tolist() == [[4] * 3] * 2


def test_roles_are_checked_in_an_eager_step() -> None:
    rows = eager_rows()
    rows.upload("host", [0, 4])
    rows.check_index("host", 5)
    rows.check_write_index("host", 5, skips_negative=False)
    rows.check_offsets("host", 4, closed=True)
    rows.check_lengths("host", 4)
    rows.check_bounded("host", 4)
    checks: list[Callable[[], None]] = [
        lambda: rows.check_index("host", 4),
        lambda: rows.check_write_index("host", 4, skips_negative=True),
        lambda: rows.check_offsets("host", 3, closed=True),
        lambda: rows.check_lengths("host", 3),
        lambda: rows.check_bounded("host", 3),
    ]
    for check in checks:
        with pytest.raises(SourceError, match="slot host"):
            check()
    eager_rows().check_index("host", 0)  # absent: nothing to check
