"""Where a stage stands in its pipeline."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ppcgc.runtime.errors import BuildError

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.layers import LayerRange


class Place(Enum):
    """Where a stage stands in its pipeline."""

    ONLY = "only"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


def check_place(place: Place, layers: LayerRange, runner: str) -> None:
    """Raises BuildError when a range of layers cannot stand at this place of a pipeline."""
    first, last = layers.start == 0, layers.end == layers.count
    stands = {
        (True, True): Place.ONLY,
        (True, False): Place.FIRST,
        (False, False): Place.MIDDLE,
        (False, True): Place.LAST,
    }[first, last]
    if stands is not place:
        raise BuildError(
            f"{runner} is for the {place.value} stage; layers {layers} make the {stands.value} one"
        )
