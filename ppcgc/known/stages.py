"""The stages of a pipeline: which layers each has, where the boundary is crossed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ppcgc.ir import EvenStages, Family, Place
from ppcgc.known.sizes import Known, NotKnownError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Layers ``start`` to ``end - 1``, global ids."""

    start: int
    end: int
    place: Place


def stages_of(family: Family, known: Known, wanted: int | None) -> tuple[Stage, ...] | None:
    """The stages, None while their number or the number of layers is not known.

    ``wanted`` is the number of stages of an even split. Raises :class:`NotKnownError` for a
    number that the spec or the layers rule out.
    """
    declared = family.pipeline.stages
    if isinstance(declared, EvenStages):
        if wanted is None or known.layers is None:
            return None
        try:
            return _placed(_even(known.layers, wanted))
        except NotKnownError as error:
            raise NotKnownError(str(error), family.pipeline.span) from error
    ranges = [(part.start, part.end) for part in declared]
    if wanted is not None and wanted != len(ranges):
        raise NotKnownError(f"--stages {wanted}: the spec states {len(ranges)} stages")
    if known.layers is not None and ranges[-1][1] != known.layers:
        problem = f"the stages end at layer {ranges[-1][1]}, the model at {known.layers}"
        raise NotKnownError(problem, declared[-1].span)
    return _placed(ranges)


def _even(layers: int, stages: int) -> list[tuple[int, int]]:
    """As even as can be; the first stages get the remainder."""
    if not 1 <= stages <= layers:
        raise NotKnownError(f"--stages {stages}: {layers} layers make 1 to {layers} stages")
    each, more = divmod(layers, stages)
    starts = [stage * each + min(stage, more) for stage in range(stages + 1)]
    return list(pairwise(starts))


def _placed(ranges: list[tuple[int, int]]) -> tuple[Stage, ...]:
    return tuple(
        Stage(start=start, end=end, place=_place(stage, len(ranges)))
        for stage, (start, end) in enumerate(ranges)
    )


def _place(stage: int, stages: int) -> Place:
    if stages == 1:
        return Place.ONLY
    if stage == 0:
        return Place.FIRST
    return Place.LAST if stage == stages - 1 else Place.MIDDLE
