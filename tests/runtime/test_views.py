"""Closed views: what is missing is named, and Python's own protocols still work on them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
import torch
from views_of_tests import Handed, Slots

from ppcgc.runtime.errors import MissingSlotError, OutputError
from ppcgc.runtime.recording import ReadingBoundary, all_keys_read


def slots() -> Any:
    return Slots(input_ids=torch.tensor([1]), positions=torch.tensor([2]))


def handed() -> Any:
    return Handed(hidden_states=torch.tensor([1.0]), residual=torch.tensor([2.0]))


def test_a_missing_slot_is_named_with_what_there_is() -> None:
    with pytest.raises(
        MissingSlotError, match="no slot 'cu_seqlens': this stage has input_ids, positions"
    ):
        _ = slots().cu_seqlens


def test_a_view_cannot_be_written() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        slots().input_ids = torch.tensor([3])
    with pytest.raises((AttributeError, TypeError)):
        slots().extra = torch.tensor([3])


@pytest.mark.parametrize("make", [slots, handed])
def test_views_are_equal_to_themselves_alone(make: Any) -> None:
    one, other = make(), make()
    assert one == one and one != other  # tensors have no truth value to compare by
    assert len({one, other, one}) == 2


def test_hasattr_getattr_and_dir_are_answered_sanely() -> None:
    view = slots()
    assert hasattr(view, "positions")
    assert not hasattr(view, "cu_seqlens")
    assert not hasattr(view, "__array_interface__")
    assert getattr(view, "cu_seqlens", None) is None
    assert "positions" in dir(view)


def test_a_view_prints_what_it_has_and_reads_no_value() -> None:
    assert repr(slots()) == "Slots(input_ids=int64[1] on cpu, positions=int64[1] on cpu)"
    lacking = Handed(hidden_states=torch.zeros(2, 3), residual=None)  # type: ignore[arg-type]  # a key that does not cross
    assert repr(lacking) == "Handed(hidden_states=float32[2, 3] on cpu, residual=None)"


@pytest.mark.parametrize("view", [slots(), handed()], ids=["slots", "boundary"])
def test_views_copy_and_pickle(view: Any) -> None:
    for again in (copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert type(again) is type(view)
        for field in dataclasses.fields(view):
            assert torch.equal(getattr(again, field.name), getattr(view, field.name))


def test_a_boundary_is_read_by_attribute_by_key_and_as_a_mapping() -> None:
    boundary = handed()
    assert boundary["residual"] is boundary.residual
    assert list(boundary) == ["hidden_states", "residual"]
    assert dict(boundary) == {key: boundary[key] for key in boundary}
    assert {**boundary}.keys() == {"hidden_states", "residual"}
    assert len(boundary) == 2
    assert "residual" in boundary
    assert "topk" not in boundary
    with pytest.raises(MissingSlotError, match="no key 'topk': it has hidden_states, residual"):
        _ = boundary["topk"]


# ---------------------------------------------------------------- reads during warm-up


def test_every_way_of_reading_is_noted() -> None:
    """The end of the block raises for a key that was not read, as the test after this one sees."""
    for read in (
        lambda b: (b.hidden_states, b.residual),
        lambda b: (b["hidden_states"], b["residual"]),
        lambda b: {**b},
        lambda b: dict(b.items()),
        lambda b: [b[key] for key in b],
    ):
        with all_keys_read(handed(), ()) as shown:
            read(shown)


def test_a_key_that_nobody_reads_is_named() -> None:
    with (
        pytest.raises(OutputError, match="hands over residual, which the forward never read"),
        all_keys_read(handed(), ()) as shown,
    ):
        assert "residual" in shown  # asking is not reading
        _ = shown.hidden_states


def test_a_key_that_a_slot_shows_counts_as_read() -> None:
    """The end of the block does not raise for it."""
    with all_keys_read(handed(), ("residual",)) as shown:
        _ = shown["hidden_states"]


def test_an_error_of_the_forward_is_the_one_that_is_seen() -> None:
    with pytest.raises(ZeroDivisionError), all_keys_read(handed(), ()):
        _ = 1 // 0


def test_a_stage_without_a_boundary_is_not_watched() -> None:
    with all_keys_read(None, ()) as shown:
        assert shown is None


def test_the_watching_boundary_passes_for_one() -> None:
    reading = ReadingBoundary(handed(), set())
    assert not hasattr(reading, "topk")
    assert not hasattr(reading, "__torch_function__")
    assert copy.copy(reading).keys() == ("hidden_states", "residual")
    with pytest.raises(MissingSlotError, match="no key 'topk'"):
        _ = reading["topk"]
