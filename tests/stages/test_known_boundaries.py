"""Boundaries in the slots themselves: when a step need not look at their rows any more."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from test_stage_replays import ranges_of, reference
from torch import Tensor
from toy_model import toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import SourceError


def test_a_boundary_in_the_slots_is_looked_at_until_it_is_known(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever object it is, and however many there were before; each of them is received."""
    first, last = toy_stages(toy, 2)
    rt.capture([first, last])
    slots = last.table[(8, 4)].boundary
    looked: list[object] = []
    receive = type(last.incoming).receive

    def noting(incoming: Any, into: Any, source: Any, *rest: Any) -> None:
        looked.append(source)
        receive(incoming, into, source, *rest)

    monkeypatch.setattr(type(last.incoming), "receive", noting)
    made = [
        toy.Boundary(hidden_states=slots.hidden_states[:5], residual=slots.residual[:, :5])
        for _ in range(5)
    ]
    for turn, boundary in enumerate([*made * 8, *made[-1:] * 20]):
        batch = toy_batch(3, 2, seed=turn)
        handed = first.run(batch)
        wanted, _ = reference(batch, ranges_of([first, last]))
        boundary.hidden_states.copy_(handed.hidden_states)
        boundary.residual.copy_(handed.residual)
        assert torch.equal(last.run(batch, boundary).hidden_states, wanted)
        if turn % 3 == 0:  # rows elsewhere, in between
            assert torch.equal(last.run(batch, handed).hidden_states, wanted)
    for known in (made[0], made[3]):
        for _ in range(70):
            last.run(toy_batch(3, 2), known)
        before = len(looked)
        for _ in range(200):
            last.run(toy_batch(3, 2), known)
        assert len(looked) == before
    last.run(toy_batch(3, 2), made[1])  # one that is known and met often makes way at once
    before = len(looked)
    last.run(toy_batch(3, 2), made[1])
    assert len(looked) == before
    with pytest.raises(SourceError, match="live rows"):
        last.run(toy_batch(3, 3), made[-1])


@dataclass(slots=True, kw_only=True, eq=False)
class Loose(rt.Boundary):
    """A caller's own, which is not frozen and has more than the stage takes."""

    hidden_states: Tensor
    residual: Tensor
    note: Tensor


def test_a_boundary_of_the_callers_own_class_is_looked_at_in_each_step(toy: Any) -> None:
    first, last = toy_stages(toy, 2)
    rt.capture([first, last])
    slots = last.table[(8, 4)].boundary
    loose = Loose(
        hidden_states=slots.hidden_states[:5], residual=slots.residual[:, :5], note=torch.ones(1)
    )
    for turn in range(20):
        batch = toy_batch(3, 2, seed=turn)
        handed = first.run(batch)
        wanted, _ = reference(batch, ranges_of([first, last]))
        if turn < 12:
            loose.hidden_states.copy_(handed.hidden_states)
            loose.residual.copy_(handed.residual)
        else:  # the same object, other rows
            loose.hidden_states = handed.hidden_states.clone()
            loose.residual = handed.residual.clone()
        assert torch.equal(last.run(batch, loose).hidden_states, wanted)


def test_a_boundary_without_rows_is_not_kept(toy: Any) -> None:
    """None of its rows lie elsewhere, and none in the slots."""
    first, last = toy_stages(toy, 2)
    rt.capture([first, last])
    none = toy_batch()
    handed = first.run(none)
    rows = torch.empty(1000, *handed.hidden_states.shape[1:])
    kept = weakref.ref(rows)
    last.run(none, toy.Boundary(hidden_states=rows[:0], residual=handed.residual.clone()))
    del rows
    assert kept() is None
