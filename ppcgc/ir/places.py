"""Where a stage stands in its pipeline."""

from __future__ import annotations

from enum import Enum


class Place(Enum):
    """Where a stage stands in its pipeline; known when code is generated."""

    ONLY = "only"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


STAGE_GROUPS: dict[str, frozenset[Place]] = {
    "first": frozenset({Place.ONLY, Place.FIRST}),
    "later": frozenset({Place.MIDDLE, Place.LAST}),
    "last": frozenset({Place.ONLY, Place.LAST}),
    "all": frozenset(Place),
}
