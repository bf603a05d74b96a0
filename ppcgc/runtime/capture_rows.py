"""Rows that no role makes up while capturing: a hook's, and those of the caller's slots."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from ppcgc.runtime.arena import first_rows
from ppcgc.runtime.host_sources import spread_over
from ppcgc.runtime.loading import check_source, host_rows_of
from ppcgc.runtime.slot_info import SlotInfo


def rows_of_hook(
    rows: Any, info: SlotInfo, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """What a hook gave for a slot at capture, checked as the slot's source is at each step.

    Exactly the live rows, of the slot's dtype, where the slot's source lies. Raises SourceError
    kinds that name the hook.
    """
    name = f"{info.name}, rows of hook {info.capture_hook} at capture"
    if info.host:
        words = {"cast": info.cast, "broadcast": info.broadcast}
        return host_rows_of(rows, shape, dtype, name, **words)
    if info.cast and isinstance(rows, Tensor):
        rows = rows.to(dtype)
    if info.broadcast:
        rows = spread_over(rows, shape)
    return check_source(rows, shape, dtype, torch.device("cpu") if info.host_only else device, name)


def write_as_caller(
    table: tuple[SlotInfo, ...],
    slots: object,
    shapes: Mapping[str, tuple[int, ...]],
    fills: Mapping[str, float],
    given: Mapping[str, Tensor],
) -> None:
    """In the caller's place, while capturing: live rows of slots with `source: caller`.

    Slots that say nothing of capture keep the zeros of the load.
    """
    for info in table:
        if info.source != "caller":
            continue
        slot: Tensor | None = attrgetter(info.name)(slots)
        if slot is None:
            continue
        if info.name in given:
            first_rows(slot, shapes[info.name]).copy_(given[info.name])
        elif info.name in fills:
            first_rows(slot, shapes[info.name]).fill_(fills[info.name])
