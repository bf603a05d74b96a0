"""Rows of the state that a batch's live requests read or write."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from ppcgc.runtime.slot_info import Role, SlotInfo
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.spec_rules import Unread, expected_rows
from ppcgc.runtime.verification.stages import StageUnderTest


def owned_rows(stage: StageUnderTest, case: Case, state: str) -> set[int] | None:
    """As ``subject.owned`` says, else as the slots' roles do. None where neither tells.

    A table of rows is cut to its lengths: what stands past them is nobody's. A table of pages,
    or of first rows alone, tells nothing.
    """
    written = stage.written_rows(case, state)
    if stage.subject.owned is not None:
        live = set() if written is None else written[0]
        return live | set(stage.subject.owned(case.batch, state))
    if written is None:
        return None
    live, padding = written
    owned = set(live)
    try:
        for info in stage.table:
            if info.role is not Role.INDEX or info.batch is None:
                continue
            if info.of_state == state:
                owned |= set(_rows(stage, case, info))
            elif (
                info.of_state is None and len(stage.runner.inputs.shapes(case.live)[info.name]) > 1
            ):
                return None  # a table of pages, perhaps
    except Unread:
        return None
    return owned - (padding - live)


def _rows(stage: StageUnderTest, case: Case, info: SlotInfo) -> Iterator[int]:
    table = expected_rows(stage.runner, info, case).live_part
    if info.dims is not None:
        raise Unread("it has two padded axes")
    lengths = _lengths(stage, case, info) if table.dim() == 2 and info.dim == 0 else None
    for row, values in enumerate(table):
        count = None if lengths is None else int(lengths[row])
        yield from (int(value) for value in values.flatten()[:count].tolist())


def _lengths(stage: StageUnderTest, case: Case, table: SlotInfo) -> Tensor | None:
    """The one slot of lengths on the table's axis; None where there is none, or several."""
    found = [info for info in stage.table if info.role is Role.LENGTHS and info.axes == table.axes]
    return expected_rows(stage.runner, found[0], case).live_part if len(found) == 1 else None
