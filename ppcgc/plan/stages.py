"""Which places of the pipeline share their slots, and where each slot lives."""

from __future__ import annotations

from ppcgc.ir import (
    STAGE_GROUPS,
    BatchSource,
    ComputeSource,
    EvenStages,
    KeepPadding,
    Pipeline,
    Place,
    Residency,
    Runner,
    Slot,
)
from ppcgc.plan.model import KindPlan, Placement, SlotPlan

LATER = STAGE_GROUPS["later"]


def places_of(pipeline: Pipeline) -> tuple[Place, ...]:
    """The places that stages of the pipeline can have; all of them when the build decides."""
    stages = pipeline.stages
    if isinstance(stages, EvenStages):
        return tuple(Place)
    if len(stages) == 1:
        return (Place.ONLY,)
    between = (Place.MIDDLE,) if len(stages) > 2 else ()
    return (Place.FIRST, *between, Place.LAST)


def kinds_of(runner: Runner, places: tuple[Place, ...] = tuple(Place)) -> tuple[KindPlan, ...]:
    """Places grouped by equal slots and equal bindings, in the order of the pipeline.

    Places that take a boundary and places that do not are never of one kind.
    """
    groups: dict[object, list[Place]] = {}
    for place in (place for place in places if place in runner.places):
        names = tuple(slot.qualified for slot in runner.slots if place in slot.stages or slot.owns)
        groups.setdefault((place in LATER, names, runner.forward.at(place)), []).append(place)
    return tuple(
        KindPlan(
            name=_kind_name(kind),
            places=tuple(kind),
            slots=tuple(
                slot_plan(slot) for slot in runner.slots if kind[0] in slot.stages or slot.owns
            ),
        )
        for kind in groups.values()
    )


def _kind_name(places: list[Place]) -> str:
    """Named as the spec names the places: ``first`` for only and first, ``later`` for the rest."""
    if len(places) == 1:
        return places[0].value
    return "later" if places[0] in LATER else "first"


def slot_plan(slot: Slot) -> SlotPlan:
    return SlotPlan(slot=slot, placement=placement_of(slot))


def placement_of(slot: Slot) -> Placement:
    """The host block takes what the host rewrites, padding included, at every load.

    What keeps rows from one step to the next, or is written by others, has one address.
    """
    if isinstance(slot.source, ComputeSource):
        return Placement.HOST_BLOCK
    rewritten = (
        isinstance(slot.source, BatchSource)
        and slot.residency is Residency.HOST
        and not isinstance(slot.padding, KeepPadding)
        and not slot.mutable
        and not slot.host_only
        and len(slot.axes) < 2
    )
    return Placement.HOST_BLOCK if rewritten else Placement.DEVICE
