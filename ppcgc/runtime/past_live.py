"""Rows past the live ones of a received boundary: all keys are reset by one launch.

Note [one launch for all resets]
    A mask and a fill for each key are some four launches, which took longer than a short hand-off
    itself. The count of live rows lies on the device, so one kernel can read it and write what
    lies past it, of all keys at once. What it needs to know of them does not change: a table on
    the device, made in the warm-up, since nothing can be copied there while a graph is captured.
    Elsewhere, and for keys that the kernel does not take, each key is reset by itself. Both leave
    the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from ppcgc.runtime.receiving import reset_fill, reset_repeat_last
from ppcgc.runtime.row_moves import WIDEST, pattern_of, programs_for, runs_kernels

FIELDS = 8  # int64 values of a key in the table
Resetter: TypeAlias = Callable[[Tensor, int, int], None]  # see ``row_kernel.reset_rows``
Row: TypeAlias = tuple[int, ...]  # a key's row of the table


def open_resetter(device: torch.device) -> Resetter | None:
    """The kernel for this device; None where keys are reset one by one."""
    if not runs_kernels(device):
        return None
    from ppcgc.runtime.row_kernel import reset_rows

    return reset_rows


class PastLive:
    """Resets of one boundary: ``fill`` or ``repeat_last`` for each key, then ``reset``."""

    def __init__(self, device: torch.device) -> None:
        self._kernel = open_resetter(device)
        self._device = device
        self._rows: list[Row] = []
        self._one_by_one: list[Callable[[], None]] = []
        self._tables: dict[tuple[Row, ...], Tensor] = {}

    def begin(self) -> None:
        """What an error left of an earlier body is forgotten."""
        self._rows.clear()
        self._one_by_one.clear()

    def fill(self, rows: Tensor, live: Tensor, value: float, *, dim: int = 0) -> None:
        """Rows past the count in ``live`` (one int32 on the device) hold ``value``."""
        self._add(rows, live, dim, value, lambda: reset_fill(rows, live, value, dim=dim))

    def repeat_last(self, rows: Tensor, live: Tensor, *, dim: int = 0) -> None:
        """Rows past the count in ``live`` repeat the last live one, zero where there is none."""
        self._add(rows, live, dim, None, lambda: reset_repeat_last(rows, live, dim=dim))

    def reset(self) -> None:
        """Do it, inside the captured region."""
        table = self._table(tuple(self._rows))
        if self._kernel is not None and table is not None:
            largest = max(row[2] * row[7] for row in self._rows)
            self._kernel(table, len(self._rows), programs_for(largest))
        else:
            for act in self._one_by_one:
                act()
        self.begin()

    def _add(
        self, rows: Tensor, live: Tensor, dim: int, value: float | None, act: Callable[[], None]
    ) -> None:
        taken = (
            self._kernel is not None
            and dim == 0
            and rows.is_contiguous()
            and rows.dtype.itemsize <= WIDEST
            and rows.nbytes < 2**30
            and live.dtype is torch.int32
        )
        if not taken:
            act()
            return
        self._rows.append(_row(rows, live, value))
        self._one_by_one.append(act)

    def _table(self, rows: tuple[Row, ...]) -> Tensor | None:
        """Their table; None where there is none and it cannot be made any more."""
        if not rows:
            return None
        table = self._tables.get(rows)
        if table is None and not torch.cuda.is_current_stream_capturing():
            table = self._tables[rows] = torch.tensor(rows, dtype=torch.int64, device=self._device)
        return table


def _row(rows: Tensor, live: Tensor, value: float | None) -> Row:
    """What the kernel reads of a key; sizes are in words of the width that all of it allows."""
    count = rows.shape[0]
    row_bytes = rows.nbytes // count if count else 0
    together = rows.data_ptr() | row_bytes | WIDEST
    width = together & -together
    return (
        rows.data_ptr(),
        live.data_ptr(),
        rows.nbytes // width,
        row_bytes // width,
        0 if value is None else pattern_of(value, rows.dtype),
        value is None,
        0,  # of no use: a row of the table is 64 bytes
        width,
    )
