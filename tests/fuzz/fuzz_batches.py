"""Random batches of any runner, legal by its spec unless they say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import torch
from fuzz_world import Counts, World, dtype_of
from torch import Tensor

from ppcgc.expr.evaluate import EvaluationError, Value
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import (
    AbsentError,
    BatchCount,
    BatchSource,
    BucketScalar,
    ComputedCount,
    ConstScalar,
    KeyScalar,
    Residency,
    Role,
    Runner,
    Scalar,
    Slot,
)
from ppcgc.plan.counts import count_expr, count_order

Path = tuple[str, ...]
ROOM = 5  # the largest value of plain data: small sums are exact in every dtype


@dataclass
class Case:
    """A batch, and what it was made of.

    ``breaks`` says that it breaks a limit. ``legal`` is False where rows or scalars cannot be what
    the spec wants of them: an error is right then, where anything checks them.
    """

    batch: SimpleNamespace
    counts: Counts
    env: dict[Ref, Value]  # live counts and scalars
    most: Counts  # the largest live count of the group of ranks, by axis
    given: dict[Path, Tensor | None] = field(default_factory=dict)  # rows by path
    legal: bool = True
    breaks: bool = False


class Batches:
    """Makes the batches of one runner."""

    def __init__(self, world: World, runner: Runner, random: Random) -> None:
        self.world = world
        self.runner = runner
        self.random = random
        self.axes = {axis.name: axis for axis in world.family.axes}
        self.rules = {rule.axis: rule for rule in runner.buckets}

    def stated(self) -> list[str]:
        """The axes whose live count a batch states."""
        return [
            name for name, rule in self.rules.items() if count_expr(rule, self.axes[name]) is None
        ]

    def make(self, wanted: Counts, *, absent: bool = False) -> Case | None:
        """A batch with these stated live counts; None where the others cannot follow them."""
        case = Case(SimpleNamespace(), {}, {}, {})
        env, counts = case.env, case.counts
        self._put_scalars(case, early=True)  # sizes may follow them
        try:
            for name in count_order(self.runner, self.axes):
                expr = count_expr(self.rules[name], self.axes[name])
                counts[name] = wanted[name] if expr is None else int(self.world.value(expr, env))
                env[Ref(Symbol.LIVE, name)] = counts[name]
        except EvaluationError:
            return None
        if min(counts.values()) < 0:
            return None
        case.most.update(counts)
        self._put_numbers(case)
        self._put_rows(case, absent=absent)
        self._put_scalars(case, early=False)
        self._put_conditions(case)
        held = (self.world.value(limit.expr, case.env) for limit in self.runner.limits)
        case.breaks = not all(held)
        return case

    # ------------------------------------------------------------ numbers

    def _put_numbers(self, case: Case) -> None:
        for name, axis in self.axes.items():
            count = case.counts.get(name, 0)
            if isinstance(axis.live, BatchCount):
                put(case.batch, axis.live.path, count)
            if axis.group is not None:
                size, rank = self.world.ranks[axis.group.over]
                others = [self.random.choice([count, count, 0, count + 1]) for _ in range(size)]
                others[rank] = count
                case.most[name] = max(others)
                put(case.batch, axis.group.path, others)

    def _put_scalars(self, case: Case, *, early: bool) -> None:
        """Those of the batch first; others follow its counts, or what it has not."""
        for scalar in self.runner.scalars:
            if early == isinstance(scalar.source, BatchCount):
                value = self._scalar(case, scalar)
                case.env[Ref(Symbol.SCALAR, scalar.name)] = value

    def _scalar(self, case: Case, scalar: Scalar) -> int:
        if scalar.presence_of is not None:
            slot = next(slot for slot in self.runner.slots if slot.qualified == scalar.presence_of)
            assert isinstance(slot.source, BatchSource)
            return int(case.given[slot.source.path] is not None)
        if isinstance(scalar.source, ComputedCount):
            value = int(self.world.value(scalar.source.expr, case.env))
        else:
            assert isinstance(scalar.source, BatchCount)
            value = put(case.batch, scalar.source.path, self._legal_value(scalar))
        match scalar.mode:
            case ConstScalar(value=only):
                case.legal &= value == only
            case KeyScalar(values=values):
                case.legal &= value in values
            case BucketScalar(sizes=sizes):
                case.legal &= value <= sizes[-1]
        return value

    def _legal_value(self, scalar: Scalar) -> int:
        match scalar.mode:
            case ConstScalar(value=only):
                return only
            case KeyScalar(values=values):
                return self.random.choice(values)
            case BucketScalar(sizes=sizes):
                return self.random.randint(0, sizes[-1])
            case _:
                return self.random.randint(0, 3)

    def _put_conditions(self, case: Case) -> None:
        """What `eager_when` asks for, such that the step need not be eager."""
        for condition in self.runner.eager_when:
            value = {"is_true": False, "is_false": True, "above": -(10**6)}.get(condition.kind)
            if condition.kind != "hook":
                put(case.batch, condition.path, value)

    # ------------------------------------------------------------ rows

    def _put_rows(self, case: Case, *, absent: bool) -> None:
        readers: dict[Path, list[Slot]] = {}
        for slot in sorted(self.runner.slots, key=lambda slot: slot.cast):
            if isinstance(slot.source, BatchSource):
                readers.setdefault(slot.source.path, []).append(slot)
        for path, slots in readers.items():
            optional = not any(isinstance(slot.absent, AbsentError) for slot in slots)
            gone = absent and optional and self.random.random() < 0.5
            case.given[path] = None if gone else self._rows(case, slots)
            put(case.batch, path, self._as_engines_give(case.given[path], slots))
        for slot in self.runner.slots:
            if slot.mirror is not None and isinstance(slot.source, BatchSource):
                twin = case.given[slot.source.path]
                if twin is None:
                    shape = self.world.shape(slot.shape, case.counts)
                    twin = torch.ones(shape, dtype=dtype_of(slot.dtype))
                twin = twin.to(dtype_of(slot.dtype))  # `cast` speaks of the slot's source
                gone = slot.mirror.optional and self.random.random() < 0.5
                case.given[slot.mirror.path] = put(
                    case.batch, slot.mirror.path, None if gone else twin
                )

    def _as_engines_give(self, rows: Tensor | None, slots: list[Slot]) -> Any:
        """Host rows come as tensors, arrays or lists; a broadcast source may lack dimensions."""
        slot = slots[0]
        if rows is None:
            return None
        if slot.broadcast and len(slots) == 1 and rows.dim() > 1 and rows.shape[0] > 0:
            spread = rows[0].expand(rows.shape).clone()
            rows.copy_(spread)
            return rows[0].clone()
        if slot.residency is Residency.HOST and rows.dim() == 1 and not rows.is_floating_point():
            return self.random.choice([rows, rows.tolist(), rows.numpy()])
        return rows

    def _rows(self, case: Case, slots: list[Slot]) -> Tensor:
        slot = slots[0]
        shape = self.world.shape(slot.shape, case.counts)
        dtype = dtype_of(slot.dtype)
        if slot.cast and len(slots) == 1 and not dtype.is_floating_point:
            dtype = torch.int64
        count = int(torch.Size(shape).numel())
        values = self._values(case, slots, count)
        return torch.tensor(values, dtype=torch.float64).to(dtype).view(shape)

    def _values(self, case: Case, slots: list[Slot], count: int) -> list[int]:
        for slot in slots:
            role, total = slot.role, case.counts.get(slot.role.of or "", 0)
            if role.role is Role.OFFSETS and role.of_kind == "axis":
                closed = slot.shape[0].offset == 1
                case.legal &= total == 0 or case.counts[slot.axes[0]] > 0
                return self._offsets(count, total, closed)
            if role.role is Role.LENGTHS and role.of_kind == "axis":
                case.legal &= count > 0 or total == 0
                lengths = [0] * count
                for _ in range(total if count else 0):
                    lengths[self.random.randrange(count)] += 1
                return lengths
        most = min(self._most(case, slot) for slot in slots)
        case.legal &= most >= 0 or count == 0
        return [self.random.randint(0, max(most, 0)) for _ in range(count)]

    def _offsets(self, count: int, total: int, closed: bool) -> list[int]:
        inner = sorted(self.random.randint(0, total) for _ in range(count))
        if count and closed:
            inner[-1] = total
        return [0, *inner[1:]] if count else []

    def _most(self, case: Case, slot: Slot) -> int:
        """The largest legal value of a slot's rows."""
        role = slot.role
        if slot.dtype == "bool" or role.role is Role.MASK:
            return 1
        if role.of is None:
            return ROOM
        match role.of_kind:
            case "dim":
                size = int(self.world.env[Ref(Symbol.DIM, role.of)])
            case "axis":
                size = case.counts[role.of]
            case _:
                size = int(self.world.env[Ref(Symbol.STATE_ROWS, role.of)])
        return size if role.role in (Role.LENGTHS, Role.COUNT) else size - 1


def put(batch: SimpleNamespace, path: Path, value: Any) -> Any:
    """Give the batch a value at a path unless it has one there; returns what it has."""
    for step in path[:-1]:
        if not hasattr(batch, step):
            setattr(batch, step, SimpleNamespace())
        batch = getattr(batch, step)
    if not hasattr(batch, path[-1]):
        setattr(batch, path[-1], value)
    return getattr(batch, path[-1])
