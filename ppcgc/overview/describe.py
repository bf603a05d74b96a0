"""The plan as plain data, with every number that is known; None stands for one that is not."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TypeAlias

from ppcgc.bind.fold import Folding
from ppcgc.expr.evaluate import EvaluationError
from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import DTYPES, BoundaryKey, Extent, Family, FreeScalar, ListedBuckets, MaxBucket
from ppcgc.known.sizes import Known, NotKnownError
from ppcgc.known.stages import Stage, stages_of
from ppcgc.plan import BucketPlan, KindPlan, Plan, RunnerPlan, SlotPlan, runner_plan
from ppcgc.plan.reach import SearchError

FORMAT_VERSION = 1

Data: TypeAlias = dict[str, object]


def describe(plan: Plan, known: Known, stages: int | None = None) -> Data:
    """What a plan comes to. Raises ``NotKnownError`` for numbers that contradict the spec."""
    family = plan.family
    cut = stages_of(family, known, stages)
    return {
        "version": FORMAT_VERSION,
        "family": family.name,
        "fingerprint": plan.fingerprint,
        "model_bytes": known.model_bytes,
        "dims": {dim.name: known.env.get(Ref(Symbol.DIM, dim.name)) for dim in family.dims},
        "layers": known.layers,
        "stages": None if cut is None else [_stage(stage, known) for stage in cut],
        "runners": [_runner(family, runner, known, cut) for runner in plan.runners],
    }


def _stage(stage: Stage, known: Known) -> Data:
    owned = {
        name: sum(stage.start <= layer < stage.end for layer in layers)
        for name, layers in known.kinds.items()
    }
    return {"place": stage.place.value, "start": stage.start, "end": stage.end, "kinds": owned}


# ---------------------------------------------------------------- runners and buckets


def _runner(family: Family, plan: RunnerPlan, known: Known, cut: tuple[Stage, ...] | None) -> Data:
    plan = _with_known_sizes(family, plan, known)
    runner = plan.runner
    capacities = {axis: family.axis(axis).max for axis in plan.axes} | dict(runner.axis_max)
    known = known.with_values(
        {Ref(Symbol.AXIS_MAX, axis): size for axis, size in capacities.items()}
    )
    keys = family.pipeline.boundary if runner.boundary is None else runner.boundary
    return {
        "name": runner.name,
        "columns": _key(plan),
        "graphs": None if plan.late else len(plan.buckets),
        "max_graphs": runner.max_graphs,
        "coverage": {axis: _coverage(plan, axis, capacities[axis]) for axis in plan.axes},
        "buckets": [_bucket(plan, bucket, known, keys, cut) for bucket in plan.buckets],
    }


def _with_known_sizes(family: Family, plan: RunnerPlan, known: Known) -> RunnerPlan:
    """The plan with buckets that follow from what is known, where code generation leaves them."""
    if not plan.late:
        return plan
    rows = {Ref(Symbol.AXIS_MAX, axis.name) for axis in family.axes}  # a runner may have less
    env = {ref: value for ref, value in known.env.items() if ref not in rows}
    folding = Folding(env=env, kinds=known.kinds)
    folded = replace(family, axes=folding.node(family.axes))
    try:
        return runner_plan(folded, folding.node(plan.runner))
    except (EvaluationError, SearchError) as problem:
        raise NotKnownError(f"buckets of {plan.runner.name}: {problem}") from problem


def _key(plan: RunnerPlan) -> list[str]:
    """The axes and scalars that graphs differ by, or that have one value in all of them."""
    free = {s.name for s in plan.runner.scalars if isinstance(s.mode, FreeScalar)}
    return [name for name in plan.columns if name not in free]


def _coverage(plan: RunnerPlan, axis: str, capacity: int) -> Data:
    """How many live rows replay at most, and how the axis gets its padded rows."""
    sizes = [bucket.padded[plan.columns.index(axis)] for bucket in plan.buckets]
    rule = next(rule for rule in plan.runner.buckets if rule.axis == axis)
    own = isinstance(rule, ListedBuckets | MaxBucket)
    return {"largest": max(sizes, default=None), "capacity": capacity, "follows": not own}


def _bucket(
    plan: RunnerPlan,
    bucket: BucketPlan,
    known: Known,
    keys: tuple[BoundaryKey, ...],
    cut: tuple[Stage, ...] | None,
) -> Data:
    columns = _key(plan)
    padded = {n: v for n, v in zip(plan.columns, bucket.padded, strict=True) if n in columns}
    live = {n: v for n, v in zip(plan.columns, bucket.live, strict=True) if n in columns}
    known = known.with_values(
        {
            Ref(Symbol.PADDED if name in plan.axes else Symbol.SCALAR, name): value
            for name, value in padded.items()
        }
    )
    return {
        "padded": padded,
        "live": live,
        "hand_offs": _hand_offs(keys, known, cut),
        "kinds": [_kind(kind, known) for kind in plan.kinds],
    }


# ---------------------------------------------------------------- tensors


def _kind(kind: KindPlan, known: Known) -> Data:
    slots = [_slot(slot, known) for slot in kind.slots if _exists(slot, known)]
    return {"name": kind.name, "places": [place.value for place in kind.places], "slots": slots}


def _exists(plan: SlotPlan, known: Known) -> bool:
    """A slot that is not there for sure is left out."""
    return plan.slot.when is None or known.value(plan.slot.when) is not False


def _slot(plan: SlotPlan, known: Known) -> Data:
    slot = plan.slot
    placement = "host" if slot.host_only else plan.placement.value
    return {
        "name": slot.qualified,
        "placement": placement,
        **_tensor(slot.shape, slot.dtype, known),
    }


def _tensor(shape: tuple[Extent, ...], dtype: str, known: Known) -> Data:
    """Extents as numbers, or as text while they are not known, and the bytes of all rows."""
    sizes = [_extent(extent, known) for extent in shape]
    element = known.model_bytes if dtype == "model" else DTYPES[dtype]
    numbers = [size for size in sizes if size is not None]
    complete = len(numbers) == len(sizes) and element is not None
    return {
        "dtype": dtype,
        "shape": [
            to_text(extent.expr) if size is None else size
            for size, extent in zip(sizes, shape, strict=True)
        ],
        "bytes": prod(numbers) * element if complete and element is not None else None,
    }


def _extent(extent: Extent, known: Known) -> int | None:
    if extent.axis is None:
        return known.extent(extent.expr)
    rows = known.env.get(Ref(Symbol.PADDED, extent.axis))
    return extent.scale * rows + extent.offset if isinstance(rows, int) else None


def _hand_offs(
    keys: tuple[BoundaryKey, ...], known: Known, cut: tuple[Stage, ...] | None
) -> list[Data]:
    """What crosses each cut, all padded rows; one entry for any cut while none is known."""
    if cut is None:
        return [_hand_off(keys, known, None)]
    return [
        _hand_off(
            keys,
            known.with_values({Ref(Symbol.CUT, "layer"): after.start}),
            after.start,
        )
        for after in cut[1:]
    ]


def _hand_off(keys: tuple[BoundaryKey, ...], known: Known, layer: int | None) -> Data:
    crossing = [key for key in keys if key.when is None or known.value(key.when) is not False]
    tensors = [{"name": key.name, **_tensor(key.shape, key.dtype, known)} for key in crossing]
    sizes = [tensor["bytes"] for tensor in tensors]
    total = sum(size for size in sizes if isinstance(size, int))
    sure = all(key.when is None or known.value(key.when) is not None for key in crossing)
    return {
        "layer": layer,
        "tensors": tensors,
        "bytes": total if sure and None not in sizes else None,
    }
