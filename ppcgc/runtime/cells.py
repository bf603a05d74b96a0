"""Slots with two padded axes: live cells copied, the others padded axis by axis.

With A the slot's first axis and B its second: cells where A is live and B is not take B's
padding; all cells where A is not live take A's.
"""

from __future__ import annotations

from torch import Tensor

from ppcgc.runtime.errors import SourceError
from ppcgc.runtime.host_sources import HostSource, spread_over
from ppcgc.runtime.loading import check_source, host_rows_of, staged


def live_cells(slot: Tensor, live: tuple[int, int], dims: tuple[int, int], name: str) -> Tensor:
    """The live part of a slot. Raises SourceError for more live rows than padded ones."""
    cells = slot
    for dim, rows in zip(dims, live, strict=True):
        if rows > slot.shape[dim]:
            raise SourceError(
                f"slot {name}: {rows} live rows on dimension {dim}, the bucket has "
                f"{slot.shape[dim]}"
            )
        cells = cells.narrow(dim, 0, rows)
    return cells


def copy_cells(
    slot: Tensor,
    source: Tensor | None,
    live: tuple[int, int],
    dims: tuple[int, int],
    name: str,
    *,
    cast: bool = False,
    broadcast: bool = False,
) -> None:
    """Copy a device source into the live cells. Raises SourceError before anything is written."""
    if cast and isinstance(source, Tensor):
        source = source.to(slot.dtype)
    cells = live_cells(slot, live, dims, name)
    if broadcast:
        source = spread_over(source, cells.shape)
    cells.copy_(check_source(source, cells.shape, slot.dtype, slot.device, name))


def upload_cells(
    slot: Tensor,
    source: HostSource,
    live: tuple[int, int],
    dims: tuple[int, int],
    name: str,
    *,
    cast: bool = False,
    broadcast: bool = False,
) -> Tensor:
    """Copy a host source into the live cells; returns it as a CPU tensor."""
    cells = live_cells(slot, live, dims, name)
    rows = host_rows_of(source, cells.shape, slot.dtype, name, cast=cast, broadcast=broadcast)
    cells.copy_(staged(rows, slot.device), non_blocking=True)
    return rows


def fill_cells(slot: Tensor, live: tuple[int, int], dims: tuple[int, int], value: float) -> None:
    """Every live cell holds ``value`` (``absent: {fill: v}``)."""
    live_cells(slot, live, dims, "absent").fill_(value)


def second_tail(slot: Tensor, live: tuple[int, int], dims: tuple[int, int]) -> Tensor:
    """Cells where the first axis is live and the second is not."""
    rows = slot.narrow(dims[0], 0, live[0])
    return rows.narrow(dims[1], live[1], slot.shape[dims[1]] - live[1])


def first_tail(slot: Tensor, live: tuple[int, int], dims: tuple[int, int]) -> Tensor:
    """Cells where the first axis is not live."""
    return slot.narrow(dims[0], live[0], slot.shape[dims[0]] - live[0])


def pad_second(slot: Tensor, live: tuple[int, int], dims: tuple[int, int], value: float) -> None:
    """Cells where the first axis is live and the second is not hold ``value``."""
    second_tail(slot, live, dims).fill_(value)


def pad_first(slot: Tensor, live: tuple[int, int], dims: tuple[int, int], value: float) -> None:
    """Cells where the first axis is not live hold ``value``."""
    first_tail(slot, live, dims).fill_(value)


def repeat_last_second(slot: Tensor, live: tuple[int, int], dims: tuple[int, int]) -> None:
    """The second axis' tail repeats its last live slab, zero when there is none."""
    tail = second_tail(slot, live, dims)
    if live[1] == 0:
        tail.zero_()
    else:
        tail.copy_(slot.narrow(dims[0], 0, live[0]).narrow(dims[1], live[1] - 1, 1))


def repeat_last_first(slot: Tensor, live: tuple[int, int], dims: tuple[int, int]) -> None:
    """The first axis' tail repeats its last live slab, zero when there is none."""
    tail = first_tail(slot, live, dims)
    if live[0] == 0:
        tail.zero_()
    else:
        tail.copy_(slot.narrow(dims[0], live[0] - 1, 1))
