"""Rows of the state that a batch's live requests read or write."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ppcgc.runtime.errors import BuildError
from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.spec_rules import Unread, expected_rows
from ppcgc.runtime.verification.stages import StageUnderTest, state_name

_AUTHORS = ("hook", "caller")


def owned_rows(stage: StageUnderTest, case: Case, state: str) -> set[int] | None:
    """As ``subject.owned`` says, else as the slots' roles do. None where neither tells.

    A table of rows is cut to its lengths: what stands past them is nobody's. A table of pages,
    or of first rows alone, tells nothing. Rows that only a hook or the caller knows are read from
    the slots, so the case is loaded for them.
    """
    written = stage.written_rows(case, state)
    if stage.subject.owned is not None:
        live = set() if written is None else written[0]
        told = row_numbers(stage.subject.owned(case.batch, state), state)
        _check_rows(stage, state, told)
        return live | told
    if written is None:
        return None
    live, padding = written
    owned = set(live)
    try:
        for info in stage.table:
            if info.role is not Role.INDEX:
                continue
            if info.of_state == state:
                owned |= set(_rows(stage, case, info))
            elif info.of_state is None and _may_be_pages(stage, case, info):
                return None
    except Unread:
        return None
    return owned - (padding - live)


def row_numbers(given: Iterable[int] | Tensor, state: str) -> set[int]:
    """What ``owned`` returned as integers: elements of a tensor are equal to none.

    Raises BuildError for a mask, or for numbers that are no rows.
    """
    if not isinstance(given, Tensor):
        try:
            return {operator.index(row) for row in given}
        except TypeError as problem:
            raise BuildError(
                f"`owned` gave {given!r:.60} for state {state} ({problem}); give row numbers"
            ) from None
    if given.dtype == torch.bool or given.is_floating_point() or given.is_complex():
        raise BuildError(
            f"`owned` gave a tensor of {given.dtype} for state {state}; give row numbers, of a "
            "mask `mask.nonzero()`"
        )
    return {int(row) for row in given.flatten().tolist()}


def _check_rows(stage: StageUnderTest, state: str, told: set[int]) -> None:
    """Raises BuildError for rows that the state does not have."""
    rows = min(tensor.shape[0] for name, tensor in stage.state.items() if state_name(name) == state)
    outside = sorted(row for row in told if not 0 <= row < rows)
    if outside:
        raise BuildError(f"`owned` gave row {outside[0]} of state {state}, which has {rows} rows")


def _may_be_pages(stage: StageUnderTest, case: Case, info: SlotInfo) -> bool:
    """An index of no state with several numbers in a row, given from outside.

    Rows behind a leading dimension are those of positions in three parts, and no pages.
    """
    given = info.batch is not None or info.source in _AUTHORS
    shape = stage.runner.inputs.shapes(case.live)[info.name]
    return given and info.dim == 0 and len(shape) > 1


def _rows(stage: StageUnderTest, case: Case, info: SlotInfo) -> Iterator[int]:
    if info.dims is not None:
        raise Unread("it has two padded axes")
    table = _live_part(stage, case, info)
    lengths = _lengths(stage, case, info) if table.dim() == 2 and info.dim == 0 else None
    for row, values in enumerate(table):
        count = None if lengths is None else int(lengths[row])
        yield from (int(value) for value in values.flatten()[:count].tolist())


def _lengths(stage: StageUnderTest, case: Case, table: SlotInfo) -> Tensor | None:
    """The one slot of lengths on the table's axis; None where there is none, or several."""
    found = [info for info in stage.table if info.role is Role.LENGTHS and info.axes == table.axes]
    return _live_part(stage, case, found[0]) if len(found) == 1 else None


def _live_part(stage: StageUnderTest, case: Case, info: SlotInfo) -> Tensor:
    """Live rows as the batch has them, or as a hook or the caller writes them.

    Raises Unread for a slot that is neither given nor computed, such as one that a graph writes.
    """
    if info.source in _AUTHORS:
        rows = _as_written(stage, case, info)
    else:
        rows = expected_rows(stage.runner, info, case).live_part
    if not info.axes:
        return rows
    live = stage.runner.inputs.shapes(case.live)[info.name][info.dim]
    return rows.narrow(info.dim, 0, live)


def _as_written(stage: StageUnderTest, case: Case, info: SlotInfo) -> Tensor:
    stage.restore()
    stage.begin(case)
    for other, tensor in stage.slots(case):
        if other.name == info.name:
            return tensor.detach().cpu().clone()
    raise Unread("the bucket has no such slot")
