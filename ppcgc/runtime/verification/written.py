"""Slots of hooks and of the caller: zero when they get them, padded when the replay gets them.

Note [the probe writes past live itself]
    Whoever may write a slot may write past its live rows, with some batch or other. So the probe
    poisons these rows behind the hooks and the caller, looks right before the replay, and puts
    right what it found: a graph must not read a wrong index.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ppcgc.runtime.arena import first_rows
from ppcgc.runtime.slot_info import SlotInfo
from ppcgc.runtime.verification.cases import Case
from ppcgc.runtime.verification.comparing import same_bits, value_difference
from ppcgc.runtime.verification.poison import poison_bytes
from ppcgc.runtime.verification.spec_rules import Unread, padded_rows
from ppcgc.runtime.verification.stages import StageUnderTest
from ppcgc.runtime.verification.verdicts import Finding

_AUTHOR = {"hook": "the hook", "caller": "the caller"}


def written_findings(
    stage: StageUnderTest, case: Case, unread: dict[str, str]
) -> Iterator[Finding]:
    """``unread`` gets the slots whose padding cannot be told, and why."""
    mine = [(info, tensor) for info, tensor in stage.slots(case) if info.source in _AUTHOR]
    if mine:
        stage.restore()
        yield from _before_they_write(stage, case, mine)
        stage.restore()
        yield from _at_the_replay(stage, case, mine, unread)


def _before_they_write(
    stage: StageUnderTest, case: Case, mine: list[tuple[SlotInfo, Tensor]]
) -> Iterator[Finding]:
    for _, tensor in mine:
        poison_bytes(tensor)
    stage.begin_unwritten(case)
    for info, tensor in mine:
        live = _live_cells(stage, case, info, tensor)
        if int(live.count_nonzero()):
            author = _AUTHOR[info.source]
            yield Finding(
                where=stage.where(case),
                subject=f"slot {info.name} ({info.line})",
                what=f"{author} gets live rows that hold an earlier step's: "
                f"{value_difference(torch.zeros_like(live), live)}",
                mend=f"zero the live rows in every load, before {author} writes them",
            )


def _at_the_replay(
    stage: StageUnderTest,
    case: Case,
    mine: list[tuple[SlotInfo, Tensor]],
    unread: dict[str, str],
) -> Iterator[Finding]:
    padded = [(info, tensor) for info, tensor in mine if _is_reset(info)]
    step = stage.begin(case)
    for info, tensor in padded:
        live = _live_cells(stage, case, info, tensor)
        kept = live.clone()
        poison_bytes(tensor)
        live.copy_(kept)
    found: list[Finding] = []

    def look() -> None:
        for info, tensor in padded:
            try:
                found.extend(_padding_findings(stage, case, info, tensor))
            except Unread as why:
                unread[info.name] = str(why)

    with stage.before_replay(case, look):
        stage.finish(step)
    yield from found


def _padding_findings(
    stage: StageUnderTest, case: Case, info: SlotInfo, tensor: Tensor
) -> Iterator[Finding]:
    live = _live_cells(stage, case, info, tensor).detach().cpu()
    rows, tail = padded_rows(stage.runner, info, case, live)
    expected = rows if tail is None else torch.cat([rows, tail], dim=info.dim)
    held = tensor.detach().cpu().clone()  # before it is put right
    if not same_bits(expected, held):
        tensor.copy_(expected)
        yield Finding(
            where=stage.where(case),
            subject=f"slot {info.name} ({info.line})",
            what=f"rows past live, written by {_AUTHOR[info.source]} or after it, are not "
            f"`padding: {info.padding}` at the replay: {value_difference(expected, held)}",
            mend="pad the slot behind its authors (`pad_late`), and let no plan write it",
        )


def _is_reset(info: SlotInfo) -> bool:
    """Whether the slot has rows past live that a step promises to reset, all of them."""
    return bool(info.axes) and not {"keep", "none"} & set(info.padding.split(","))


def _live_cells(stage: StageUnderTest, case: Case, info: SlotInfo, tensor: Tensor) -> Tensor:
    return first_rows(tensor, stage.runner.inputs.shapes(case.live)[info.name])
