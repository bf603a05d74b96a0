"""Runners that share memory and are fed in place: whose rows the slots hold, step after step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from test_sharing_runners import both
from test_stage_replays import ranges_of, reference
from toy_model import toy_batch

from ppcgc import runtime as rt
from ppcgc.runtime.errors import SourceError, StaleStepError


@pytest.fixture
def fed(toy: Any) -> tuple[Any, Any]:
    """Two stages; prefill of them, and decode in the same memory."""
    return both(toy, 2, fed=True)


def right(runners: Any, batch: Any, out: Any) -> bool:
    return torch.equal(out.hidden_states, reference(batch, ranges_of(runners))[0])


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_fed_boundary_is_refused_once_another_runner_was_loaded(
    fed: Any, seen: bool, begun: bool
) -> None:
    prefill, decode = fed
    one, other = toy_batch(1, 1, 1, seed=1), toy_batch(5, 9, seed=2)
    if seen:  # the object is known to lie in place, and is not looked at again
        assert right(decode, one, decode[1].run(one, decode[0].run(one)))
    boundary = decode[0].run(one)
    assert right(prefill, other, prefill[1].run(other, prefill[0].run(other)))
    with pytest.raises(StaleStepError, match="slots that were written since"):
        decode[1].begin(one, boundary) if begun else decode[1].run(one, boundary)
    assert right(decode, one, decode[1].run(one, decode[0].run(one)))


def test_a_fed_boundary_serves_as_often_as_nobody_writes_over_it(fed: Any) -> None:
    _, decode = fed
    batch = toy_batch(1, 1, seed=3)
    boundary = decode[0].run(batch)
    for _ in range(2):
        assert right(decode, batch, decode[1].run(batch, boundary))


@pytest.mark.parametrize("sender", ["the same runner", "the other runner"])
def test_a_begun_step_is_stale_once_its_memory_is_fed(fed: Any, sender: str) -> None:
    prefill, decode = fed
    batch = toy_batch(4, 3, seed=4)
    step = prefill[1].begin(batch, prefill[0].run(batch))
    if sender == "the same runner":
        prefill[0].run(toy_batch(6, seed=5))
    else:
        decode[0].run(toy_batch(1, 1, seed=5))
    with pytest.raises(StaleStepError):
        prefill[1].finish(step)


def test_rows_from_elsewhere_are_copied_whoever_was_loaded(fed: Any) -> None:
    prefill, decode = fed
    one, other = toy_batch(1, 1, seed=6), toy_batch(5, seed=7)
    boundary = decode[0].run(one)
    held = held_apart(boundary)
    prefill[1].run(other, prefill[0].run(other))
    assert right(decode, one, decode[1].run(one, held))


def test_an_eager_step_over_rows_that_are_gone_is_refused(fed: Any) -> None:
    prefill, decode = fed
    one, other = toy_batch(1, 1, seed=8), toy_batch(5, seed=9)
    boundary = decode[0].run(one)
    assert right(decode, one, decode[1].eager(one, boundary))
    prefill[1].run(other, prefill[0].run(other))
    for eager in (decode[1].eager, decode[1].begin_eager):
        with pytest.raises(StaleStepError, match="slots that were written since"):
            eager(one, boundary)


def test_one_key_in_the_slots_is_enough(fed: Any) -> None:
    prefill, decode = fed
    one, other = toy_batch(1, 1, seed=10), toy_batch(5, seed=11)
    boundary = decode[0].run(one)
    first, *_ = boundary
    mixed = replace(boundary, **{first: getattr(boundary, first).clone()})
    prefill[1].run(other, prefill[0].run(other))
    with pytest.raises(StaleStepError, match="slots that were written since"):
        decode[1].run(one, mixed)


@pytest.mark.parametrize("how", ["run", "eager", "begin"])
@pytest.mark.parametrize("rows", [[1.0], None, torch.ones(2, 3).to_sparse()])
def test_a_key_that_holds_no_rows_is_refused(fed: Any, how: str, rows: Any) -> None:
    prefill, decode = fed
    one, other = toy_batch(1, 1, seed=10), toy_batch(5, seed=11)
    made = decode[0].run(one)
    first, *_ = made
    prefill[1].run(other, prefill[0].run(other))
    with pytest.raises(SourceError, match=f"boundary.{first}: "):
        getattr(decode[1], how)(one, replace(held_apart(made), **{first: rows}))


def held_apart(made: Any) -> Any:
    return replace(made, **{name: getattr(made, name).clone() for name in made})


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_receiver_s_own_other_step_writes_over_a_fed_boundary(
    toy: Any, share: bool, fails: bool
) -> None:
    _, decode = both(toy, 2, fed=True, share=share)
    one, other = toy_batch(1, 1, seed=12), toy_batch(1, 1, seed=13)
    made = decode[0].run(other)
    held = held_apart(made)
    boundary = decode[0].run(one)
    if fails:  # at its last key, with the others copied already
        *_, last = held
        with pytest.raises(SourceError):
            decode[1].run(other, replace(held, **{last: getattr(held, last).double()}))
    else:
        assert right(decode, other, decode[1].run(other, held))
    with pytest.raises(StaleStepError, match="slots that were written since"):
        decode[1].run(one, boundary)


@pytest.mark.parametrize("recapture", ["its own", "another's, which shares"])
def test_a_capture_makes_what_was_begun_and_what_was_fed_stale(fed: Any, recapture: str) -> None:
    prefill, decode = fed
    one = toy_batch(1, 1, seed=14)
    boundary = decode[0].run(one)
    step = decode[1].begin(one, boundary)
    rt.capture([decode[1] if recapture == "its own" else prefill[1]], share=True)
    with pytest.raises(StaleStepError):
        decode[1].finish(step)
    with pytest.raises(StaleStepError, match="slots that were written since"):
        decode[1].run(one, boundary)
    assert right(decode, one, decode[1].run(one, decode[0].run(one)))
