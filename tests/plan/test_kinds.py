"""Kinds of stage: places that share their code; and where each slot lives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan_specs import SPEC, family_of

from ppcgc.ir import Place
from ppcgc.plan import Placement, plan
from ppcgc.plan.stages import kinds_of, places_of


def kinds(text: str) -> dict[str, tuple[str, ...]]:
    """The first runner's kinds of stage and the places of each."""
    runner = plan(family_of(text)).runners[0]
    return {kind.name: tuple(place.value for place in kind.places) for kind in runner.kinds}


def test_places_with_equal_slots_and_bindings_share_a_kind() -> None:
    assert kinds(SPEC) == {"first": ("only", "first"), "later": ("middle", "last")}


def test_a_slot_of_the_last_stage_splits_both_kinds() -> None:
    text = SPEC.replace("padding: {keep: unread, initial: 0}", "padding: zero, stages: last")
    assert kinds(text) == {
        "only": ("only",),
        "first": ("first",),
        "middle": ("middle",),
        "last": ("last",),
    }


def test_a_binding_of_one_place_splits_its_kind() -> None:
    text = SPEC.replace(
        "later: {hidden: boundary, batch: view}",
        "later: {hidden: boundary, batch: view}\n"
        "      last: {hidden: boundary, batch: view, logits: {literal: true}}",
    )
    assert list(kinds(text)) == ["first", "middle", "last"]


def test_first_and_later_never_share_a_kind() -> None:
    """Not even with no slot and no binding that tells them apart."""
    runner = family_of().runners[0]
    same = replace(runner.forward, only=(), first=(), middle=(), last=())
    slots = tuple(slot for slot in runner.slots if len(slot.stages) == len(Place))
    found = kinds_of(replace(runner, forward=same, slots=slots))
    assert [kind.places for kind in found] == [
        (Place.ONLY, Place.FIRST),
        (Place.MIDDLE, Place.LAST),
    ]


@pytest.mark.parametrize(
    ("stages", "places"),
    [
        ("even", ["only", "first", "middle", "last"]),
        ("[[0, 4]]", ["only"]),
        ("[[0, 2], [2, 4]]", ["first", "last"]),
        ("[[0, 1], [1, 2], [2, 4]]", ["first", "middle", "last"]),
    ],
)
def test_only_places_that_the_pipeline_has_get_code(stages: str, places: list[str]) -> None:
    text = SPEC.replace("boundary:", f"stages: {stages}\n  boundary:", 1)
    family = family_of(text)
    assert [place.value for place in places_of(family.pipeline)] == places
    assert sorted(p for found in kinds(text).values() for p in found) == sorted(places)


def test_a_runner_can_be_missing_on_some_stages() -> None:
    runner = replace(family_of().runners[0], places=frozenset({Place.FIRST, Place.MIDDLE}))
    assert [kind.places for kind in kinds_of(runner)] == [(Place.FIRST,), (Place.MIDDLE,)]


def placement(words: str) -> Placement:
    """Where the first slot lives when it has these words."""
    text = SPEC.replace(
        "{name: input_ids, axis: tokens, dtype: int64, padding: zero, source: batch.input_ids, "
        "residency: host, stages: first}",
        f"{{name: input_ids, axis: tokens, dtype: int64, {words}}}",
    )
    return plan(family_of(text)).runners[0].kinds[0].slots[0].placement


@pytest.mark.parametrize(
    "words",
    [
        "padding: zero, source: batch.x, residency: host",
        "padding: {fill: live.tokens}, source: batch.x, residency: host",
        "padding: repeat_last, source: batch.x, residency: host",
        "source: {compute: row.tokens}",
    ],
)
def test_what_the_host_rewrites_at_each_load_is_in_the_block(words: str) -> None:
    assert placement(words) is Placement.HOST_BLOCK


@pytest.mark.parametrize(
    "words",
    [
        "padding: zero, source: batch.x",
        "padding: {keep: unread, initial: 0}, source: batch.x, residency: host",
        "padding: zero, source: batch.x, residency: host, mutable: true",
        "padding: zero, source: caller",
        "source: {const: 3}",
        "source: graph, mutable: true",
    ],
)
def test_what_others_write_or_keep_has_one_address(words: str) -> None:
    assert placement(words) is Placement.DEVICE
