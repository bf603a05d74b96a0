"""Rows of the boundary that are split over the ranks of tensor parallelism.

Note [a part is cut from padded rows]
    Rank r of n holds the rows from r * p / n up to (r + 1) * p / n of a bucket's p padded rows, as
    a reduce-scatter inside the stage leaves them. Live are those below the global live count. So
    live rows are no equal parts: the first ranks are full, one may be cut, those after it have
    none. An eager step has no bucket; it is cut like one with the next multiple of n, so that the
    last parts are shorter there, or empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from torch import Tensor

if TYPE_CHECKING:  # see Note [what an import does not need] in ``ppcgc.runtime``
    from ppcgc.runtime.parallel import Ranks


def part_rows(rows: int, tp: Ranks) -> int:
    """How many of these padded rows a rank holds; of the next multiple where they do not divide."""
    return -(-rows // tp.size)


def part_start(rows: int, tp: Ranks) -> int:
    """The global number of the first row of this rank's part, which has ``rows`` rows."""
    return rows * tp.rank


def live_part(live: int, rows: int, tp: Ranks) -> int:
    """How many rows of this rank's part, which has ``rows`` rows, are live."""
    return min(max(live - part_start(rows, tp), 0), rows)


@overload
def cut_part(
    buffer: Tensor, tp: Ranks, split: tuple[int, int], *cuts: tuple[int, int]
) -> Tensor: ...


@overload
def cut_part(buffer: None, tp: Ranks, split: tuple[int, int], *cuts: tuple[int, int]) -> None: ...


@overload
def cut_part(
    buffer: Tensor | None, tp: Ranks, split: tuple[int, int], *cuts: tuple[int, int]
) -> Tensor | None: ...


def cut_part(
    buffer: Tensor | None, tp: Ranks, split: tuple[int, int], *cuts: tuple[int, int]
) -> Tensor | None:
    """The live rows of a part: ``split`` and ``cuts`` are (dim, global live rows), the first of
    the dimension that is split. None for a key that does not cross.
    """
    if buffer is None:
        return None
    dim, live = split
    buffer = buffer.narrow(dim, 0, live_part(live, buffer.shape[dim], tp))
    for dim, live in cuts:
        buffer = buffer.narrow(dim, 0, live)
    return buffer
