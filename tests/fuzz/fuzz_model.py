"""A model for any stage: it reads all that it is given and returns all that it is asked for.

Row n of what it returns is made of the rows n of what it is given, along the same axis, so that
padded rows reach no live one. All numbers are small and whole, and sums of them exact.
"""

from __future__ import annotations

from typing import Any

import torch
from fuzz_world import Counts, World, dtype_of
from torch import Tensor

from ppcgc.expr.tree import Expr, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BoundaryKey,
    BoundaryValue,
    BoundTo,
    CallerSource,
    ComputeSource,
    Extent,
    GraphSource,
    KeyScalar,
    Output,
    Place,
    Runner,
    ScalarValue,
    Slot,
    SlotValue,
    ViewValue,
    ZeroPadding,
)
from ppcgc.runtime import LayerRange


class AnyModel:
    """``rows`` are the rows of the axes in this call, told before it: a real model reads them off
    the shapes of its inputs, this one may have none to read.
    """

    def __init__(self, world: World, runner: Runner, place: Place, layers: LayerRange) -> None:
        self.world = world
        self.runner = runner
        self.place = place
        self.layers = layers
        self.rows: Counts = {}
        self.slots = {slot.qualified: slot for slot in runner.slots}
        self.keys = {key.name: key for key in world.boundary(runner)}

        self.sums: dict[str, Tensor] = {}
        self.whole = torch.zeros(())

    def forward(self, **given: Any) -> object:
        kept = self.whole
        self.whole = torch.zeros((), dtype=torch.float64)
        self.sums = {
            axis: torch.zeros(rows, dtype=torch.float64) for axis, rows in self.rows.items()
        }
        for binding in self.runner.forward.at(self.place):
            self._read(binding.value, given.pop(binding.keyword))
        assert set(given.values()) <= {None}, "what this place does not bind is None"
        result = self._result()
        self.sums, self.whole = {}, kept  # a tensor that outlives a capture costs a collection
        return result

    def _result(self) -> object:
        if self.place in (Place.ONLY, Place.LAST):
            return self._outputs()
        passed = {
            key.name
            for key in self.keys.values()
            if key.by_runtime and self.place is Place.MIDDLE and self._enters(key)
        }
        return {
            key.name: self._made(key)
            for key in self.keys.values()
            if self.world.crosses(key, self.layers.end) and key.name not in passed
        }

    def _enters(self, key: BoundaryKey) -> bool:
        return self.place in (Place.MIDDLE, Place.LAST) and self.world.crosses(
            key, self.layers.start
        )

    # ------------------------------------------------------------ what is given

    def _read(self, value: BoundTo, given: Any) -> None:
        match value:
            case SlotValue(name=name):
                self._read_slot(self.slots[name], given)
            case ViewValue():
                for name, slot in self.slots.items():
                    self._read_slot(slot, in_view(given, name))
            case BoundaryValue(key=None) if given is not None:
                assert list(given) == [n for n, key in self.keys.items() if self._enters(key)]
                for name in given:
                    self._read_key(self.keys[name], given[name])
            case BoundaryValue(key=str(name)) if given is not None:
                self._read_key(self.keys[name], given)
            case ScalarValue(name=name):
                assert isinstance(given, int)
                scalar = next(s for s in self.runner.scalars if s.name == name)
                if isinstance(scalar.mode, KeyScalar):
                    self.whole = self.whole + given

    def _read_key(self, key: BoundaryKey, tensor: Tensor) -> None:
        assert list(tensor.shape) == self.world.shape(key.shape, self.rows, self.layers.start)
        assert tensor.dtype == dtype_of(key.dtype)
        self._add(key.axes, key.shape, tensor)

    def _read_slot(self, slot: Slot, tensor: Tensor | None) -> None:
        if tensor is None:
            return
        assert list(tensor.shape) == self.world.shape(slot.shape, self.rows, self.layers.start)
        assert tensor.dtype == dtype_of(slot.dtype)
        if isinstance(slot.source, GraphSource):
            tensor.fill_(1)
        if slot.host_only or isinstance(slot.source, CallerSource):
            return  # the caller's window is no part of `eager`; host values would be frozen
        if isinstance(slot.source, ComputeSource) and speaks_of_padding(slot.source.expr):
            return  # an eager step has other padded rows
        if len(slot.axes) == 2 and not isinstance(slot.padding, ZeroPadding):
            return
        self._add(slot.axes, slot.shape, tensor)

    def _add(self, axes: tuple[str, ...], shape: tuple[Extent, ...], tensor: Tensor) -> None:
        numbers = tensor.to(torch.float64)
        if not axes:
            self.whole = self.whole + numbers.sum()
            return
        dim = next(at for at, extent in enumerate(shape) if extent.axis == axes[0])
        others = [at for at in range(numbers.dim()) if at != dim]
        sums = numbers.sum(others) if others else numbers
        extent = shape[dim]
        own = sums[extent.offset :].reshape(self.rows[axes[0]], extent.scale).sum(1)
        self.sums[axes[0]] = self.sums[axes[0]] + own

    # ------------------------------------------------------------ what is asked for

    def _outputs(self) -> object:
        made = {output.path: self._made(output) for output in self.runner.outputs}
        if None in made:
            return made[None]
        if all(isinstance(path, int) for path in made):
            return [made.get(at) for at in range(1 + max(int(path or 0) for path in made))]
        return {str(path): tensor for path, tensor in made.items()}

    def _made(self, wanted: Output | BoundaryKey) -> Tensor:
        shape = self.world.shape(wanted.shape, self.rows, self.layers.end)
        total = self.whole
        if wanted.axes:
            dim = next(at for at, extent in enumerate(wanted.shape) if extent.axis)
            extent = wanted.shape[dim]
            own = self.sums[wanted.axes[0]].repeat_interleave(extent.scale)
            head = torch.zeros(extent.offset, dtype=torch.float64)
            view = [-1 if at == dim else 1 for at in range(len(shape))]
            total = total + torch.cat([head, own]).view(view)
        return torch.remainder(total, 7).expand(shape).to(dtype_of(wanted.dtype))


def in_view(view: Any, name: str) -> Tensor | None:
    """A slot of a view by its qualified name; None where the stage does not have it."""
    for step in name.split("."):
        view = getattr(view, step) if step in getattr(view, "__dataclass_fields__", ()) else None
    found: Tensor | None = view
    return found


def speaks_of_padding(expr: Expr) -> bool:
    return any(ref.symbol is Symbol.PADDED for ref in refs(expr))
