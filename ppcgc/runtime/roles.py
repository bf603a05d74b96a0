"""Live values of host sources against the role of their slot.

They are on the host anyway, so every step checks them: an index past the end of its table is an
error with a slot's name here, and a device assert, or a foreign row, in a kernel.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ppcgc.runtime.errors import SourceError


def check_index(name: str, rows: Tensor, limit: int, *, skips_negative: bool = False) -> None:
    """Raises SourceError unless every value is in [0, limit). Without values there is no fault.

    A negative value is legal where the consumer skips it. With a limit of 0, an axis without live
    rows, 0 is legal: it is the first padded row, where padding points as well.
    """
    if rows.numel() == 0:
        return
    low, high = _range(rows)
    last = max(limit - 1, 0)
    if (low < 0 and not skips_negative) or high > last:
        negative = ", or negative ones, which are skipped" if skips_negative else ""
        raise SourceError(
            f"slot {name}: live values run from {low} to {high}, legal are 0 to {last}{negative}"
        )


def check_write_index(name: str, rows: Tensor, limit: int, *, skips_negative: bool) -> None:
    """As ``check_index``; a negative value is legal where the consumer skips it."""
    if rows.numel() == 0:
        return
    low, high = _range(rows)
    if high >= limit or (low < 0 and not skips_negative):
        raise SourceError(
            f"slot {name}: live values run from {low} to {high}, the state has rows "
            f"0 to {limit - 1}"
        )


def check_offsets(name: str, rows: Tensor, end: int, *, closed: bool) -> None:
    """Raises SourceError unless offsets start at 0, do not decrease and end at ``end``.

    ``closed``: the n + 1 form, whose last value is the end itself; else each value is a start.
    """
    if rows.numel() == 0:
        return
    first, last = int(rows[0]), int(rows[-1])
    ends_right = last == end if closed else last <= end
    if first != 0 or not ends_right or bool((rows[1:] < rows[:-1]).any()):
        raise SourceError(
            f"slot {name}: offsets {rows.tolist()} must start at 0, not decrease, and "
            f"{'end at' if closed else 'stay within'} the {end} live rows"
        )


def check_lengths(name: str, rows: Tensor, total: int) -> None:
    """Raises SourceError unless the lengths are non-negative and add up to ``total``."""
    low, high = _range(rows)
    found = int(rows.sum())
    if found != total or low < 0 or high > total:  # a sum of large ones may come round again
        raise SourceError(
            f"slot {name}: lengths {rows.tolist()} add up to {found}, the axis has {total} "
            "live rows"
        )


def check_bounded(name: str, rows: Tensor, limit: int) -> None:
    """Raises SourceError unless every value is in [0, limit]."""
    low, high = _range(rows)
    if low < 0 or high > limit:
        raise SourceError(
            f"slot {name}: live values run from {low} to {high}, legal are 0 to {limit}"
        )


def _range(rows: Tensor) -> tuple[int, int]:
    if rows.numel() == 0:
        return 0, 0
    low, high = torch.aminmax(rows)
    return int(low), int(high)
