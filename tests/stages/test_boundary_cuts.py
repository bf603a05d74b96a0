"""A boundary is taken by the stage behind its cut alone, whichever path gave it out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_stage_replays import ranges_of, reference
from toy_model import toy_batch, toy_stages

from ppcgc import runtime as rt
from ppcgc.runtime.errors import SourceError
from ppcgc.runtime.views import write_cut


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("given_by", ["run", "eager"])
@pytest.mark.parametrize("taken_by", ["run", "eager", "begin"])
@pytest.mark.parametrize("guarded", [False, True])
def test_a_stage_left_out_or_run_twice_is_refused(
    toy: Any, fed: bool, given_by: str, taken_by: str, guarded: bool
) -> None:
    first, middle, last = toy_stages(toy, 3, fed=fed)
    rt.capture([first, middle, last])
    for runner in (first, middle, last):
        runner.guard_views(guarded)
    batch = toy_batch(3, 2)
    handed = getattr(first, given_by)(batch)
    starts = [stage.layers.start for stage in (middle, last)]
    with pytest.raises(SourceError, match=rf"PrefillLast .* in front of layer {starts[0]}:"):
        getattr(last, taken_by)(batch, handed)
    again = getattr(middle, given_by)(batch, getattr(first, given_by)(batch))
    with pytest.raises(SourceError, match=rf"PrefillMiddle .* in front of layer {starts[1]}:"):
        getattr(middle, taken_by)(batch, again)
    right = last.run(batch, middle.run(batch, first.run(batch)))
    wanted, _ = reference(batch, ranges_of([first, middle, last]))
    assert torch.equal(right.hidden_states, wanted)


def test_a_boundary_of_the_callers_own_has_no_cut(toy: Any) -> None:
    first, middle, last = toy_stages(toy, 3)
    rt.capture([first, middle, last])
    batch = toy_batch(3, 2)
    wanted, _ = reference(batch, ranges_of([first, middle, last]))
    handed = first.run(batch)
    for stage in (middle, last):
        own = toy.Boundary(
            hidden_states=handed.hidden_states.clone(), residual=handed.residual.clone()
        )
        handed = stage.run(batch, own)
    assert torch.equal(handed.hidden_states, wanted)


class Lookup(dict[str, Any]):
    """A caller's mapping with attributes, which knows its own keys alone."""

    __getattr__ = dict.__getitem__


def test_a_boundary_of_another_kind_or_family_has_no_cut_here(toy: Any) -> None:
    first, last = toy_stages(toy, 2)
    rt.capture([first, last])
    batch = toy_batch(3, 2)
    wanted, _ = reference(batch, ranges_of([first, last]))
    handed = first.run(batch)
    parts = {"hidden_states": handed.hidden_states.clone(), "residual": handed.residual.clone()}
    assert torch.equal(last.run(batch, Lookup(parts)).hidden_states, wanted)
    others = toy.Boundary(**parts)
    write_cut(others, "another family", 16)
    assert torch.equal(last.run(batch, others).hidden_states, wanted)
