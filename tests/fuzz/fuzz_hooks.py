"""Host code of the caller for any hook, and the live cells of any tensor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fuzz_model import in_view
from fuzz_reading import HOOK_VALUE
from fuzz_world import Counts, World
from torch import Tensor

from ppcgc.ir import BoundaryKey, Hook, Runner, Slot


class AnyHook:
    """Host code of the caller for any hook; ``load`` fills the live rows of what it writes."""

    def __init__(self, world: World, runner: Runner, hook: Hook) -> None:
        self.world = world
        self.slots = [slot for slot in runner.slots if slot.qualified in hook.writes]
        self.axes = [rule.axis for rule in runner.buckets]

    def key(self, rows: Any, slots: Any, workspace: Tensor | None) -> object:
        return SimpleNamespace(rows=rows)

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        counts = {axis: getattr(live, axis) for axis in self.axes}
        for slot in self.slots:
            tensor = in_view(slots, slot.qualified)
            if tensor is not None:
                live_cells(self.world, slot, tensor, counts).fill_(HOOK_VALUE)

    def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
        return None

    def eager(self, batch: Any, live: Any) -> bool:
        return False


def live_cells(world: World, slot: Slot | BoundaryKey, tensor: Tensor, counts: Counts) -> Tensor:
    shape = world.shape(slot.shape, counts) if isinstance(slot, Slot) else None
    for dim, extent in enumerate(slot.shape):
        if extent.axis is not None:
            rows = extent.scale * counts[extent.axis] + extent.offset
            tensor = tensor.narrow(dim, 0, rows)
    assert shape is None or list(tensor.shape) == shape
    return tensor
