"""A second reading of a load: what each slot must hold, from the typed spec and the batch alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from fuzz_batches import Case
from fuzz_world import Counts, World, dtype_of
from torch import Tensor

from ppcgc.expr.evaluate import Value
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentFill,
    BatchSource,
    BucketScalar,
    CallerSource,
    ComputeSource,
    ConstSource,
    FillPadding,
    HookSource,
    OneAxisPadding,
    PaddingByAxis,
    Place,
    RepeatLastPadding,
    Runner,
    Slot,
    ZeroPadding,
)
from ppcgc.runtime import LayerRange

HOOK_VALUE, CALLER_VALUE = 1, 1
Expected = tuple[Tensor, Tensor]  # what the cells hold, and which of them anybody says


class Reading:
    """One load of a stage: ``rows`` are the bucket's, or the live ones of an eager step."""

    def __init__(
        self,
        world: World,
        runner: Runner,
        place: Place,
        layers: LayerRange,
        case: Case,
        rows: Counts,
    ) -> None:
        self.world = world
        self.place = place
        self.layers = layers
        self.case = case
        self.rows = rows
        self.env = {**case.env, **{Ref(Symbol.PADDED, axis): n for axis, n in rows.items()}}
        self.zero_axes = {
            axis.name for axis in world.family.axes if axis.zero_key and rows.get(axis.name) == 0
        }
        self.rounded = {
            Ref(Symbol.SCALAR, scalar.name)
            for scalar in runner.scalars
            if isinstance(scalar.mode, BucketScalar)
        }

    def exists(self, slot: Slot) -> bool:
        """Whether the stage has the slot in this graph."""
        owned = any(layer in self.layers for kind in slot.owns for layer in self.world.kinds[kind])
        if self.place not in slot.stages and not owned:
            return False
        if self.zero_axes & set(slot.axes):
            return False
        return slot.when is None or bool(self.world.value(slot.when, self.env))

    def expected(self, slot: Slot) -> Expected | None:
        """None for what only others write."""
        dtype = dtype_of(slot.dtype)
        shape = self.world.shape(slot.shape, self.rows)
        match slot.source:
            case ConstSource(value=value):
                everywhere = torch.full(shape, self.world.number(value), dtype=dtype)
                return everywhere, torch.ones(shape, dtype=torch.bool)
            case ComputeSource(expr=expr):
                if self.rounded & refs(expr):
                    return None
                return self._computed(slot, expr), torch.ones(shape, dtype=torch.bool)
            case BatchSource(path=path):
                live = self.case.given[path]
                if live is None and isinstance(slot.absent, AbsentFill):
                    live = self._live(slot, slot.absent.value)
            case HookSource():
                live = self._live(slot, HOOK_VALUE)
            case CallerSource():
                live = self._live(slot, CALLER_VALUE)
            case _:
                return None
        return None if live is None else self.padded(slot, live.to(dtype))

    def twin(self, slot: Slot) -> Expected | None:
        """The host twin of a slot: rows of its own, the slot's padding."""
        if slot.mirror is None:
            return None
        live = self.case.given[slot.mirror.path]
        return self.padded(slot, self._live(slot, 0) if live is None else live)

    def _live(self, slot: Slot, value: float) -> Tensor:
        shape = self.world.shape(slot.shape, self.case.counts)
        return torch.full(shape, value, dtype=dtype_of(slot.dtype))

    def padded(self, slot: Slot, live: Tensor) -> Expected:
        """Live cells, and the cells past them as the padding says, the second axis' first."""
        return self.padded_key(slot, live, self.world.shape(slot.shape, self.rows))

    def padded_key(self, slot: Any, live: Tensor, shape: list[int]) -> Expected:
        """The same for whatever has a shape, axes and a padding."""
        cells = torch.zeros(shape, dtype=live.dtype)
        known = torch.zeros(cells.shape, dtype=torch.bool)
        inner = tuple(slice(0, extent) for extent in live.shape)
        cells[inner] = live
        known[inner] = True
        for axis, padding in reversed(self._by_axis(slot)):
            dim = next(at for at, extent in enumerate(slot.shape) if extent.axis == axis)
            reach = (cells, known)
            if axis != slot.axes[0]:
                reach = (self._live_of_first(slot, cells), self._live_of_first(slot, known))
            self._pad(*reach, dim, live.shape[dim], padding)
        return cells, known

    def _by_axis(self, slot: Any) -> list[tuple[str, OneAxisPadding]]:
        if slot.padding is None:
            return []
        if isinstance(slot.padding, PaddingByAxis):
            first, second = slot.axes
            return [(first, slot.padding.first), (second, slot.padding.second)]
        return [(axis, slot.padding) for axis in slot.axes]

    def _live_of_first(self, slot: Any, cells: Tensor) -> Tensor:
        """The cells where the first axis is live."""
        dim = next(at for at, extent in enumerate(slot.shape) if extent.axis == slot.axes[0])
        extent = slot.shape[dim]
        return cells.narrow(dim, 0, extent.scale * self.case.counts[slot.axes[0]] + extent.offset)

    def _pad(
        self, cells: Tensor, known: Tensor, dim: int, live: int, padding: OneAxisPadding
    ) -> None:
        tail = cells.narrow(dim, live, cells.shape[dim] - live)
        says: bool | Tensor = True
        match padding:
            case ZeroPadding():
                tail.zero_()
            case FillPadding(value=value):
                says = isinstance(value, bool | int | float) or not (self.rounded & refs(value))
                tail.fill_(self.world.number(value, self.env))
            case RepeatLastPadding():
                tail.copy_(cells.narrow(dim, live - 1, 1) if live else torch.zeros_like(tail))
                says = known.narrow(dim, live - 1, 1) if live else says  # of two axes one may keep
            case _:
                says = False
        known.narrow(dim, live, known.shape[dim] - live)[...] = says

    def _computed(self, slot: Slot, expr: Expr) -> Tensor:
        cells = torch.zeros(self.world.shape(slot.shape, self.rows), dtype=dtype_of(slot.dtype))
        dims = {extent.axis: at for at, extent in enumerate(slot.shape) if extent.axis}
        for numbers in product(*(range(cells.shape[dim]) for dim in dims.values())):
            env: dict[Ref, Value] = dict(self.env)
            part = cells
            for (axis, dim), number in zip(dims.items(), numbers, strict=True):
                env[Ref(Symbol.ROW, axis)] = number
                part = part.narrow(dim, number, 1)
            part.fill_(self.world.number(expr, env))
        return cells


def differing(found: Tensor, expected: Expected) -> str | None:
    """What differs, None when nothing that anybody says does."""
    cells, known = expected
    if list(found.shape) != list(cells.shape) or found.dtype != cells.dtype:
        return f"found {found.dtype} {list(found.shape)}, not {cells.dtype} {list(cells.shape)}"
    wrong = known & (found.to(torch.float64) != cells.to(torch.float64))
    if not bool(wrong.any()):
        return None
    at = tuple(wrong.nonzero()[0].tolist())
    return f"cell {at} holds {found[at].item()}, not {cells[at].item()}"
