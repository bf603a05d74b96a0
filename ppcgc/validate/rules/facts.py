"""Questions that several rules ask of a family."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.tree import Bool, Expr, Int, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BoundaryKey,
    BucketRule,
    BucketScalar,
    ComputedCount,
    ComputeSource,
    ConstScalar,
    ConstSource,
    EqualsBuckets,
    Family,
    FillPadding,
    FreeScalar,
    KeyScalar,
    ListedBuckets,
    Output,
    PaddedBuckets,
    Place,
    Runner,
    Scalar,
    Slot,
)
from ppcgc.plan.buckets import scalar_ranges
from ppcgc.plan.intervals import Interval
from ppcgc.plan.stages import places_of
from ppcgc.resolve.constants import constants

Literal: TypeAlias = int | float | bool
LATER = (Place.MIDDLE, Place.LAST)
MOST_COMBINATIONS = 20_000  # of sizes that are looked at; far above any sensible max_graphs


@dataclass(frozen=True, slots=True)
class Tensor:
    """A slot, boundary key or output, with what to call it in a message."""

    what: str
    node: Slot | BoundaryKey | Output


def tensors(family: Family) -> Iterator[Tensor]:
    """Everything of a family that has an axis, a shape and a dtype."""
    for key in family.pipeline.boundary:
        yield Tensor(f"boundary key '{key.name}'", key)
    for runner in family.runners:
        for key in runner.boundary or ():
            yield Tensor(f"boundary key '{key.name}'", key)
        for slot in runner.slots:
            yield Tensor(f"slot '{slot.qualified}'", slot)
        for output in runner.outputs:
            yield Tensor(f"output '{output.name}'", output)


def slots(family: Family) -> Iterator[tuple[Runner, Slot]]:
    """Every slot with its runner."""
    for runner in family.runners:
        for slot in runner.slots:
            yield runner, slot


def literal(value: Expr | float | None) -> Literal | None:
    """The value of a literal; None for an expression with names in it."""
    match value:
        case None | float():
            return value
        case Int(number):
            return number
        case Bool(truth):
            return truth
        case _:
            return _constant(value)


def _constant(expr: Expr) -> int | bool | None:
    if refs(expr):
        return None
    try:
        value = evaluate(expr, {})
    except EvaluationError:
        return None
    return None if isinstance(value, str) else value


def fixed_dims(family: Family) -> dict[Ref, int]:
    """The dims whose sizes are known when code is generated, and the capacities of axes."""
    bound = () if family.bound is None else family.bound.dims
    known = {Ref(Symbol.DIM, name): size for name, size in bound}
    return known | constants(family.dims, family.axes)


def fixed(expr: Expr, known: dict[Ref, int]) -> int | None:
    """The value of a size, or None when it is not known when code is generated."""
    try:
        value = evaluate(expr, known)
    except EvaluationError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def bucket_of(runner: Runner, axis: str) -> BucketRule | None:
    """The runner's entry in ``buckets`` for an axis."""
    return next((rule for rule in runner.buckets if rule.axis == axis), None)


def follows(rule: BucketRule) -> frozenset[str]:
    """The axes that a derived bucket rule names."""
    if isinstance(rule, EqualsBuckets | PaddedBuckets):
        return axes_in(rule.expr)
    return frozenset()


def scalars_in(rule: BucketRule) -> frozenset[str]:
    """The scalars that a derived bucket rule names."""
    if isinstance(rule, EqualsBuckets | PaddedBuckets):
        return scalars_of(rule.expr)
    return frozenset()


def asks_unkeyed(runner: Runner) -> bool:
    """Does a size or a limit name a scalar that no graph has a value for?"""
    named = frozenset[str]().union(
        *(scalars_in(rule) for rule in runner.buckets),
        *(scalars_of(limit.expr) for limit in runner.limits),
    )
    return any(s.name in named and isinstance(s.mode, FreeScalar) for s in runner.scalars)


def scalars_of(expr: Expr) -> frozenset[str]:
    """The scalars that an expression names."""
    return frozenset(ref.name for ref in refs(expr) if ref.symbol is Symbol.SCALAR)


def axes_in(expr: Expr) -> frozenset[str]:
    """The axes whose rows an expression uses."""
    counts = (Symbol.LIVE, Symbol.PADDED, Symbol.ROW)
    return frozenset(ref.name for ref in refs(expr) if ref.symbol in counts)


def ladder(family: Family, rule: BucketRule) -> tuple[int, ...]:
    """The sizes of an axis that follows no other; empty for a derived one."""
    if isinstance(rule, ListedBuckets):
        return rule.sizes
    if isinstance(rule, EqualsBuckets | PaddedBuckets):
        return ()
    return (family.axis(rule.axis).max,)


def scalar_values(scalar: Scalar) -> tuple[int, ...]:
    """The values of a scalar that have graphs of their own; one for what is not in the key."""
    match scalar.mode:
        case BucketScalar(sizes=values) | KeyScalar(values=values):
            return values
        case ConstScalar(value=value):
            return (value,)
        case FreeScalar():
            return (0,)


def scalar_box(runner: Runner) -> dict[Ref, Interval]:
    """The least and the greatest value of each scalar that has a graph."""
    spans = {scalar.name: scalar_ranges(scalar) for scalar in runner.scalars}
    return {
        Ref(Symbol.SCALAR, name): (min(low for low, _ in own), max(high for _, high in own))
        for name, own in spans.items()
        if own
    }


def in_order(sizes: tuple[int, ...]) -> bool:
    """Positive, ascending and unique."""
    return bool(sizes) and sizes[0] >= 1 and all(a < b for a, b in pairwise(sizes))


def places(family: Family) -> tuple[Place, ...]:
    """The places that the pipeline can have; all of them when the build decides."""
    return places_of(family.pipeline)


def runner_places(family: Family, runner: Runner) -> tuple[Place, ...]:
    """The places of the pipeline where a runner exists."""
    return tuple(place for place in places(family) if place in runner.places)


def slot_places(slot: Slot) -> frozenset[Place]:
    """Where a slot may stand: anywhere when it goes with a kind of layer."""
    return frozenset(Place) if slot.owns else slot.stages


def boundary_of(family: Family, runner: Runner) -> tuple[BoundaryKey, ...]:
    """The boundary as a runner hands it on, with its own fields."""
    return family.pipeline.boundary if runner.boundary is None else runner.boundary


def lowered(family: Family, runner: Runner) -> Family:
    """The family with the capacities that a runner has."""
    if not runner.axis_max:
        return family
    axes = tuple(replace(axis, max=runner.capacity(axis)) for axis in family.axes)
    return replace(family, axes=axes)


def expressions(slot: Slot) -> Iterator[tuple[Expr, Span]]:
    """The expressions of a slot outside its shape, each with its place."""
    if isinstance(slot.source, ComputeSource):
        yield slot.source.expr, slot.span_of("source")
    if isinstance(slot.source, ConstSource) and not isinstance(slot.source.value, float):
        yield slot.source.value, slot.span_of("source")
    for padding in slot.paddings:
        if isinstance(padding, FillPadding) and not isinstance(padding.value, float):
            yield padding.value, slot.span_of("padding")
    if slot.capture_fill is not None and not isinstance(slot.capture_fill, float):
        yield slot.capture_fill, slot.span_of("capture")


def live_axes(family: Family, axis: str) -> frozenset[str]:
    """The axes that an axis' live count is computed from."""
    live = family.axis(axis).live
    return axes_in(live.expr) if isinstance(live, ComputedCount) else frozenset()


def listed(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names)
