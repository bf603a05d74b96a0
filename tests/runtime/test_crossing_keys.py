"""A boundary key that does not cross a cut: None as an attribute, no key of the mapping."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from ppcgc.runtime.errors import MissingSlotError, OutputError
from ppcgc.runtime.recording import all_keys_read
from ppcgc.runtime.views import Boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed(Boundary):
    hidden_states: Tensor
    picks: Tensor | None


def test_a_key_that_does_not_cross_is_no_key() -> None:
    boundary = Handed(hidden_states=torch.ones(2), picks=None)
    assert boundary.picks is None
    assert "picks" not in boundary
    assert {**boundary}.keys() == {"hidden_states"}
    with pytest.raises(MissingSlotError, match="'picks' does not cross this cut"):
        boundary["picks"]
    with pytest.raises(MissingSlotError, match="no key 'pick'"):
        boundary["pick"]


def test_a_key_that_crosses_is_one() -> None:
    boundary = Handed(hidden_states=torch.ones(2), picks=torch.zeros(1))
    assert list(boundary) == ["hidden_states", "picks"]
    assert boundary["picks"].tolist() == [0]


def test_only_keys_that_cross_must_be_read() -> None:
    with all_keys_read(Handed(hidden_states=torch.ones(2), picks=None), ()) as shown:
        assert shown.picks is None
        assert "picks" not in shown
        assert shown.hidden_states.tolist() == [1, 1]
    with (
        pytest.raises(OutputError, match="picks"),
        all_keys_read(Handed(hidden_states=torch.ones(2), picks=torch.ones(1)), ()) as shown,
    ):
        assert shown["hidden_states"] is not None
