"""A world for any case: sizes, states, batches, and a model that any spec can be run with.

Everything is read off the typed spec; nothing off the generated code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import (
    AbsentError,
    Axis,
    BatchCount,
    BatchSource,
    BoundaryKey,
    BuildDim,
    ConfigDim,
    EvenStages,
    ExprDim,
    Extent,
    Family,
    Output,
    Place,
    Role,
    Runner,
    Slot,
)
from ppcgc.plan.counts import count_expr, count_order

MODEL_DTYPE = torch.float32
Counts = dict[str, int]


def sizes_of(family: Family) -> tuple[dict[str, Any], Counts, dict[Ref, Value]]:
    """A config, build sizes, and the values that dims have with them."""
    config: dict[str, Any] = {}
    build: Counts = {}
    env: dict[Ref, Value] = {Ref(Symbol.AXIS_MAX, axis.name): axis.max for axis in family.axes}
    pending = list(family.dims)
    for number, dim in enumerate(family.dims):
        size = 4 + 2 * (number % 3)
        if isinstance(dim.source, ConfigDim):
            _put(config, dim.source.path, size)
            env[Ref(Symbol.DIM, dim.name)] = size
        elif isinstance(dim.source, BuildDim):
            build[dim.name] = size * 4
            env[Ref(Symbol.DIM, dim.name)] = size * 4
    while pending:
        dim = pending.pop(0)
        if isinstance(dim.source, ExprDim):
            try:
                env[Ref(Symbol.DIM, dim.name)] = evaluate(dim.source.expr, env)
            except EvaluationError:
                pending.append(dim)
    if isinstance(family.pipeline.layer_count, ConfigDim):
        _put(config, family.pipeline.layer_count.path, 7)
    return config, build, env


def _put(config: dict[str, Any], path: tuple[str, ...], value: int) -> None:
    for step in path[:-1]:
        config = config.setdefault(step, {})
    config[path[-1]] = value


def stages_of(family: Family) -> int:
    """How many stages a test builds: all kinds of them, where the build may say."""
    stages = family.pipeline.stages
    return 3 if isinstance(stages, EvenStages) else len(stages)


def shape_of(shape: tuple[Extent, ...], env: Mapping[Ref, Value], rows: Counts) -> tuple[int, ...]:
    known = {**env, **{Ref(Symbol.PADDED, axis): count for axis, count in rows.items()}}
    return tuple(int(evaluate(extent.expr, known)) for extent in shape)


def dtype_of(name: str) -> torch.dtype:
    return MODEL_DTYPE if name == "model" else getattr(torch, name)


# ---------------------------------------------------------------- the model


@dataclass
class AnyModel:
    """Each live row of what it gives is a sum over the same row of everything it was given.

    ``rows`` are the rows of the axes in this call, set by the test; ``place`` says whether a
    boundary or outputs are wanted.
    """

    family: Family
    runner: Runner
    place: Place
    env: Mapping[Ref, Value]
    rows: Counts = field(default_factory=dict)

    def forward(self, **given: Any) -> object:
        tensors = [value for one in given.values() for value in self._tensors(one)]
        if self.place in (Place.FIRST, Place.MIDDLE):
            return {key.name: self._make(key, tensors) for key in self.family.pipeline.boundary}
        made = {output.path: self._make(output, tensors) for output in self.runner.outputs}
        if None in made:
            return made[None]
        if all(isinstance(path, int) for path in made):
            return tuple(made[path] for path in sorted(made, key=str))
        return made

    def _tensors(self, given: Any) -> list[tuple[tuple[Extent, ...], Tensor]]:
        """The tensors of an argument, each with its declared shape."""
        slots = {slot.qualified: slot for slot in self.runner.slots}
        if isinstance(given, Tensor):
            return self._of_one_tensor(given)
        found = []
        if hasattr(given, "keys"):
            found = [(key.shape, given[key.name]) for key in self.family.pipeline.boundary]
        elif hasattr(given, "__dataclass_fields__"):
            for name, slot in slots.items():
                if self.place in slot.stages:
                    value: Any = given
                    for step in name.split("."):
                        value = getattr(value, step)
                    if value is not None:
                        found.append((slot.shape, value))
        return found

    def _of_one_tensor(self, given: Tensor) -> list[tuple[tuple[Extent, ...], Tensor]]:
        """An argument that is one slot or one key: its shape tells which dimension has rows."""
        declared: list[Slot | BoundaryKey] = [
            *self.runner.slots,
            *self.family.pipeline.boundary,
        ]
        for tensor in declared:
            if shape_of(tensor.shape, self.env, self.rows) == tuple(given.shape):
                return [(tensor.shape, given)]
        raise AssertionError(f"nothing declared has shape {list(given.shape)} with {self.rows}")

    def _make(self, wanted: Output | BoundaryKey, tensors: list[Any]) -> Tensor:
        shape = shape_of(wanted.shape, self.env, self.rows)
        total = torch.zeros(shape, dtype=torch.float64)
        dim, axis = _padded(wanted.shape)
        for extents, tensor in tensors:
            own_dim, own_axis = _padded(extents)
            if own_axis is None and axis is None:
                total = total + tensor.to(torch.float64).sum()
            elif own_axis is not None and own_axis == axis:
                count = self.rows[axis]
                rows = tensor.to(torch.float64).movedim(own_dim, 0)[:count]
                flat = rows.reshape(count, rows.numel() // max(count, 1))
                per_row = torch.nan_to_num(flat, posinf=9.0, neginf=-9.0).sum(1)
                total = total + _spread(per_row, wanted.shape[dim], shape, dim)
        return total.to(dtype_of(wanted.dtype))


def _padded(shape: tuple[Extent, ...]) -> tuple[int, str | None]:
    for dim, extent in enumerate(shape):
        if extent.axis is not None:
            return dim, extent.axis
    return 0, None


def _spread(per_row: Tensor, extent: Extent, shape: tuple[int, ...], dim: int) -> Tensor:
    """One number for each row of the axis, over a dimension of ``a * rows + b``.

    What a row gets depends on rows before it alone, so that padding never shows in live ones.
    """
    view = [1] * len(shape)
    view[dim] = -1
    before = (torch.arange(shape[dim]) - extent.offset).clamp(min=0) // extent.scale
    return per_row[before].view(view) if len(per_row) else torch.zeros(1, dtype=torch.float64)


# ---------------------------------------------------------------- batches


@dataclass
class Batches:
    """Random batches of a runner that are legal by its spec."""

    family: Family
    runner: Runner
    env: Mapping[Ref, Value]
    random: Random

    def counts(self, wanted: Counts) -> Counts | None:
        """All live counts with these stated ones; None when that is no legal batch."""
        axes = {axis.name: axis for axis in self.family.axes}
        rules = {rule.axis: rule for rule in self.runner.buckets}
        env: dict[Ref, Value] = {}
        try:
            for name in count_order(self.runner, axes):
                expr = count_expr(rules[name], axes[name])
                count = wanted[name] if expr is None else evaluate(expr, env)
                env[Ref(Symbol.LIVE, name)] = count
            legal = all(evaluate(limit.expr, env) is True for limit in self.runner.limits)
        except EvaluationError:
            return None
        found = {name: int(env[Ref(Symbol.LIVE, name)]) for name in rules}
        fits = all(0 <= count <= axes[name].max for name, count in found.items())
        return found if legal and fits else None

    def stated(self) -> list[Axis]:
        axes = {axis.name: axis for axis in self.family.axes}
        return [axes[r.axis] for r in self.runner.buckets if count_expr(r, axes[r.axis]) is None]

    def make(self, counts: Counts, *, absent: bool = False) -> SimpleNamespace:
        """A batch with these live counts; with ``absent``, sources that may be None are."""
        batch = SimpleNamespace()
        for axis in self.family.axes:
            if isinstance(axis.live, BatchCount) and axis.name in counts:
                _assign(batch, axis.live.path, counts[axis.name])
        sources: dict[tuple[str, ...], Slot] = {}
        for slot in sorted(self.runner.slots, key=lambda slot: slot.cast):
            if isinstance(slot.source, BatchSource):
                sources.setdefault(slot.source.path, slot)
        for path, slot in sources.items():
            nothing = absent and not isinstance(slot.absent, AbsentError)
            _assign(batch, path, None if nothing else self._rows(slot, counts))
        return batch

    def _rows(self, slot: Slot, counts: Counts) -> Tensor:
        shape = shape_of(slot.shape, self.env, counts)
        dtype, role = dtype_of(slot.dtype), slot.role
        if role.role is Role.OFFSETS:
            inner = sorted(self.random.randint(0, counts[role.of or ""]) for _ in range(shape[0]))
            ends = [0, *inner[1:-1], counts[role.of or ""]] if shape[0] > 1 else [0]
            return torch.tensor(ends[: shape[0]], dtype=dtype)
        if role.role is Role.LENGTHS and role.of_kind == "axis":
            lengths = [0] * shape[0]
            for _ in range(counts[role.of or ""] if shape[0] else 0):
                lengths[self.random.randrange(shape[0])] += 1
            return torch.tensor(lengths, dtype=dtype)
        low, high = self._range(slot, counts)
        count = int(torch.Size(shape).numel())
        values = [self.random.randint(low, high) for _ in range(count)]
        return torch.tensor(values, dtype=dtype).view(shape)

    def _range(self, slot: Slot, counts: Counts) -> tuple[int, int]:
        of = slot.role.of or ""
        if slot.dtype == "bool":
            return 0, 1
        match slot.role.of_kind:
            case "dim":
                limit = int(self.env[Ref(Symbol.DIM, of)])
            case "axis":
                limit = counts[of]
            case "state":
                limit = int(evaluate(self.family.state(of).rows, self.env))
            case _:
                return 0, 5
        low = 2 if slot.role.role is Role.WRITE_INDEX else 0
        return low, max(limit - 1, low)


def _assign(batch: SimpleNamespace, path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        if not hasattr(batch, step):
            setattr(batch, step, SimpleNamespace())
        batch = getattr(batch, step)
    setattr(batch, path[-1], value)


def states_of(family: Family, env: Mapping[Ref, Value]) -> dict[str, list[Tensor]]:
    return {state.name: [torch.zeros(int(evaluate(state.rows, env)), 2)] for state in family.states}
