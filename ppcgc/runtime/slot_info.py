"""Facts about the slots of a stage, as generated code states them for reports and captures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from ppcgc.runtime.errors import DimError


class Role(Enum):
    """What the values of a slot mean to the kernels that read them."""

    DATA = "data"
    INDEX = "index"
    WRITE_INDEX = "write_index"
    OFFSETS = "offsets"
    LENGTHS = "lengths"
    MASK = "mask"
    COUNT = "count"


class SlotInfo(NamedTuple):
    """One slot, as declared. ``dtype`` None stands for the model's own.

    ``batch`` is the batch attribute path that feeds it, ``boundary`` the key, None for other
    sources; ``cast`` says that the source may have another dtype. ``of_axis`` is set where the
    role speaks of an axis. ``mirror`` is the batch path of a host twin, ``presence`` the
    scalar that says whether the source is there. ``dim`` is the padded dimension (``dims`` both of
    them); ``in_block`` says that the host block holds the slot.

    What a second reading of the load goes by, in the spec's own words: ``source`` is the kind of
    source, ``rule`` the expression of ``compute`` or ``const``, ``fill`` the value of
    ``padding: fill`` or the initial one of ``keep``, ``fill_second`` that of a second axis,
    ``absent`` the value that stands in for a source that is None; ``of_state`` names the state
    whose rows the values are.
    """

    name: str
    line: str
    axes: tuple[str, ...]
    dtype: torch.dtype | None
    padding: str
    role: Role = Role.DATA
    of_axis: str | None = None
    batch: str | None = None
    boundary: str | None = None
    cast: bool = False
    host: bool = False
    mutable: bool = False
    broadcast: bool = False
    host_only: bool = False
    mirror: str | None = None
    presence: str | None = None
    capture_hook: str | None = None  # gives the rows while capturing
    dim: int = 0
    dims: tuple[int, int] | None = None
    in_block: bool = False
    source: str = "batch"
    rule: str = ""
    fill: str = "0"
    fill_second: str = "0"
    absent: float | None = None
    of_state: str | None = None

    @property
    def rewritten(self) -> bool:
        """Whether every load writes all of the slot on the device, and nothing else does."""
        loaded = self.source in ("batch", "compute") and "keep" not in self.padding.split(",")
        return loaded and not self.mutable and not self.host_only


def facts_of(table: tuple[SlotInfo, ...], *names: str) -> tuple[SlotInfo, ...]:
    """Some slots of a runner's table, in the table's order."""
    return tuple(info for info in table if info.name in names)


def even_offsets(total: int, parts: int) -> list[int]:
    """``parts + 1`` offsets that spread ``total`` rows evenly, the first ending soonest."""
    return [total * part // parts for part in range(parts + 1)] if parts else [0]


def _capture_values(
    info: SlotInfo, shape: tuple[int, ...], live: Mapping[str, int], dtype: torch.dtype
) -> torch.Tensor:
    """Live rows that are legal for the kernels: lengths spread evenly, indices in range."""
    total = live.get(info.of_axis or "", 0)
    if info.role is Role.OFFSETS and info.of_axis is not None:
        parts = live[info.axes[0]]
        return torch.tensor(even_offsets(total, parts)[: shape[0]], dtype=dtype)
    if info.role is Role.LENGTHS and info.of_axis is not None:
        bounds = even_offsets(total, math.prod(shape))
        lengths = [after - before for before, after in pairwise(bounds)]
        return torch.tensor(lengths, dtype=dtype).view(shape)
    if info.role in (Role.LENGTHS, Role.MASK):
        return torch.ones(shape, dtype=dtype)
    return torch.zeros(shape, dtype=dtype)


def capture_batch(
    table: tuple[SlotInfo, ...],
    shapes: Mapping[str, tuple[int, ...]],
    live: Mapping[str, int],
    counts: Mapping[str, str],
    fills: Mapping[str, float],
    dtype: torch.dtype,
    device: torch.device,
    given: Mapping[str, torch.Tensor] | None = None,
    lists: Mapping[str, Sequence[int]] | None = None,
) -> Any:
    """A batch with these live counts for warm-up and capture; any batch Protocol fits it.

    ``counts`` maps a column to the batch path of its number, ``fills`` a slot to the value
    that all of its rows have, ``given`` a slot to rows of a hook; the others get what their role
    makes legal. ``lists`` are host lists by their batch path.
    """
    given = given or {}
    batch = CaptureBatch()
    for column, path in counts.items():
        _assign(batch, path, live[column])
    for path, values_of_ranks in (lists or {}).items():
        _assign(batch, path, list(values_of_ranks))
    # of two slots that read one path, the one that casts takes what the other is given, and either
    # what a hook gives
    for info in sorted(table, key=lambda info: (info.name in given, not info.cast)):
        if info.batch is None or (info.presence is not None and not live[info.presence]):
            continue
        shape, own = shapes[info.name], info.dtype or dtype
        if info.name in given:
            values = given[info.name]
        elif info.name in fills:
            values = torch.full(shape, fills[info.name], dtype=own)
        else:
            values = _capture_values(info, shape, live, own)
        _assign(batch, info.batch, values if info.host else values.to(device))
        if info.mirror is not None:
            _assign(batch, info.mirror, values.cpu())
    return batch


class CaptureBatch(SimpleNamespace):
    """A synthetic batch. What nothing gives is None: an absent source, a condition not met."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def _assign(batch: SimpleNamespace, path: str, value: object) -> None:
    *parents, leaf = path.split(".")
    for parent in parents:
        if getattr(batch, parent) is None:
            setattr(batch, parent, CaptureBatch())
        batch = getattr(batch, parent)
        if not isinstance(batch, SimpleNamespace):
            raise DimError(f"batch.{path}: batch.{parent} is a source itself")
    setattr(batch, leaf, value)
