"""A runner of ``written.yaml``: a hook and a caller that add to live rows and write past them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from spec_tools import import_spec
from torch import Tensor

from ppcgc import runtime as rt

BY_REQUEST = ("bias", "depth", "again", "kept", "noise")


class Reckless:
    """Takes the live count from all that it finds in live rows, and writes 99 or NaN past them."""

    def load(self, slots: Any, batch: Any, live: Any) -> None:
        for name in BY_REQUEST:
            add_to(getattr(slots, name), live.requests, -live.requests)
        slots.codes[:, : live.requests] += 2
        slots.codes[:, live.requests :] = 99
        add_to(slots.ends, live.requests + 1, live.pages)
        slots.ends[0] = 0
        slots.whole.add_(3)
        if slots.table is not None:
            add_to(slots.table, live.pages, 4)
            cells = slots.grid[: live.requests, : live.pages] + 1
            slots.grid.fill_(99)
            slots.grid[: live.requests, : live.pages] = cells


def add_to(slot: Tensor, live: int, value: int) -> None:
    slot[:live] += value
    slot[live:] = float("nan") if slot.is_floating_point() else 99


def write_as_caller(runner: Any, step: Any, batch: Any) -> None:
    add_to(step.slots.embeds, batch.num_requests, 1)
    add_to(step.slots.drafted, batch.num_requests, 2)


class Planner:
    """Keeps copies of the slots that it plans from."""

    def __init__(self) -> None:
        self.seen: dict[str, Tensor] = {}

    def plan(self, made: object, slots: Any, batch: Any, live: Any) -> None:
        found = {name: getattr(slots, name) for name in NAMES}
        self.seen = {name: slot.clone() for name, slot in found.items() if slot is not None}


NAMES = (*BY_REQUEST, "codes", "ends", "whole", "table", "grid", "embeds", "drafted")


class Model:
    def forward(self, *, view: Any) -> Tensor:
        view.noise.add_(1)
        total = view.ids + view.codes.sum(0) + view.drafted + view.whole.sum()
        total = total + view.depth + view.again + view.bias + view.noise + view.embeds + view.kept
        return self.extra(total, view)

    def extra(self, total: Tensor, view: Any) -> Tensor:
        """Where tests plant faults."""
        return total


def built(folder: Path, *, model: Any = None, filler: Any = None, planner: Any = None) -> Any:
    made = import_spec("written", folder)
    runner = made.StepOnly(
        model=(model or Model()).forward,
        layers=rt.LayerRange(0, 2, 2),
        dims=made.Dims.from_config({}),
        dtype=torch.float32,
        backend=rt.open_backend("cpu"),
        hooks=made.StepOnlyHooks(filler=filler or Reckless(), planner=planner or Planner()),
    )
    rt.capture([runner])
    return runner


def batch_of(requests: int, pages: int) -> Any:
    ids = torch.arange(1, requests + 1)
    return SimpleNamespace(num_requests=requests, num_pages=pages, ids=ids)
