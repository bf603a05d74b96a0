"""Host code of the caller for any hook, and the live cells of any tensor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from fuzz_model import in_view
from fuzz_reading import HOOK_VALUE
from fuzz_world import Counts, World, dtype_of
from torch import Tensor

from ppcgc.ir import (
    BoundaryKey,
    CallerSource,
    Hook,
    HookSource,
    KeepPadding,
    Role,
    Runner,
    Slot,
)

OTHER_VALUE = 77  # nobody's: neither a hook's, the caller's nor a padding


class AnyHook:
    """Host code of the caller for any hook; ``load`` adds to live rows, and writes past them."""

    def __init__(self, world: World, runner: Runner, hook: Hook) -> None:
        self.world = world
        self.given = {
            slot.qualified: slot for slot in runner.slots if slot.capture_hook == hook.name
        }
        self.slots = [slot for slot in runner.slots if slot.qualified in hook.writes]
        self.axes = [rule.axis for rule in runner.buckets]

    def capture(self, slot: str, live: Any) -> Tensor:
        counts = {axis: getattr(live, axis) for axis in self.axes}
        asked = self.given[slot]
        rows = torch.ones(self.world.shape(asked.shape, counts), dtype=dtype_of(asked.dtype))
        total = counts.get(asked.role.of or "", 0) if asked.role.of_kind == "axis" else 0
        if asked.role.role in (Role.INDEX, Role.OFFSETS) or asked.role.of_kind == "axis":
            rows.zero_()
        if asked.role.role is Role.LENGTHS and rows.numel() and asked.role.of_kind == "axis":
            rows.view(-1)[0] = total
        if asked.role.role is Role.OFFSETS and asked.shape[0].offset == 1:
            rows[-1] = total
        return rows

    def key(self, rows: Any, slots: Any, workspace: Tensor | None) -> object:
        return SimpleNamespace(rows=rows)

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        counts = {axis: getattr(live, axis) for axis in self.axes}
        for slot in self.slots:
            tensor = in_view(slots, slot.qualified)
            if tensor is not None:
                write_past_live(self.world, slot, tensor, counts, HOOK_VALUE)

    def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
        return None

    def eager(self, batch: Any, live: Any) -> bool:
        return False


def padded_late(slot: Slot) -> bool:
    """Is the slot padded when all have written it, not at the load."""
    return isinstance(slot.source, CallerSource | HookSource)


def write_past_live(world: World, slot: Slot, tensor: Tensor, counts: Counts, value: int) -> None:
    """Live rows go from zero to ``value``; where rows past live are reset, they hold another."""
    live = live_cells(world, slot, tensor, counts)
    # float8 and bool have no sum of their own
    written = (live.float() if live.dtype.itemsize == 1 else live) + value
    if not any(isinstance(padding, KeepPadding) for padding in slot.paddings):
        tensor.fill_(OTHER_VALUE)
    live.copy_(written)


def live_cells(world: World, slot: Slot | BoundaryKey, tensor: Tensor, counts: Counts) -> Tensor:
    shape = world.shape(slot.shape, counts) if isinstance(slot, Slot) else None
    for dim, extent in enumerate(slot.shape):
        if extent.axis is not None:
            rows = extent.scale * counts[extent.axis] + extent.offset
            tensor = tensor.narrow(dim, 0, rows)
    assert shape is None or list(tensor.shape) == shape
    return tensor
