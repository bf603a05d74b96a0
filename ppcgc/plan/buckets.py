"""The bucket table of a runner: which padded sizes can be asked for, and what captures them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from ppcgc.expr.evaluate import evaluate_extent
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.expr.walk import with_constants
from ppcgc.ir import (
    Axis,
    BucketRule,
    BucketScalar,
    ConstScalar,
    EqualsBuckets,
    FreeScalar,
    KeyScalar,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    Runner,
    Scalar,
)
from ppcgc.plan.counts import axes_named, count_expr, count_order, in_order_of_need
from ppcgc.plan.intervals import Interval
from ppcgc.plan.limits import limits_of
from ppcgc.plan.model import BucketPlan
from ppcgc.plan.reach import Space, fullest, patience

Axes = Mapping[str, Axis]


def bucket_table(runner: Runner, axes: Axes) -> tuple[BucketPlan, ...]:
    """Every reachable bucket, ascending by padded rows in the order of ``columns``.

    A combination that no live counts within ``limits`` can ask for gets no graph. Raises
    EvaluationError for a derived size without a value, SearchError for limits beyond reason.
    """
    names, table, cuts = columns(runner, axes), [], patience()
    for padded, served in combinations(runner, axes):
        counts = fullest(space_of(runner, axes, served), cuts)
        if counts is not None:
            live = {ref.name: count for ref, count in counts.items()}
            table.append(
                BucketPlan(
                    padded=tuple(padded.get(name, 0) for name in names),
                    live=tuple(live.get(name, 0) for name in names),
                )
            )
    return tuple(sorted(table, key=lambda bucket: bucket.padded))


def columns(runner: Runner, axes: Axes) -> tuple[str, ...]:
    """What a bucket's numbers stand for: axes in the order of ``buckets``, scalars, groups.

    A grouped axis has one more column, the largest live count of its group. It decides which
    bucket is chosen and is no part of the key: 0 in every bucket.
    """
    own = tuple(rule.axis for rule in runner.buckets)
    grouped = tuple(group_column(axis) for axis in own if axes[axis].group is not None)
    return (*own, *(scalar.name for scalar in runner.scalars), *grouped)


def group_column(axis: str) -> str:
    """The name of the column that holds a group's largest live count."""
    return f"{axis}_most"


def combinations(
    runner: Runner, axes: Axes
) -> Iterator[tuple[dict[str, int], dict[str, Interval]]]:
    """Each combination of sizes: padded rows by column, and the counts that they serve.

    Limits are not looked at. Raises EvaluationError for a derived size without a value.
    """
    own = own_ranges(runner, axes)
    following = follow_order(runner)
    for ranges in product(*own.values()):
        served = dict(zip(own, ranges, strict=True))
        padded = {name: high for name, (_, high) in served.items()}
        for rule in following:
            padded[rule.axis] = derived_rows(rule, padded)
            served[rule.axis] = (0, padded[rule.axis])
        yield padded, served


def own_ranges(runner: Runner, axes: Axes) -> dict[str, tuple[Interval, ...]]:
    """For each axis that follows no other, and each scalar, the counts that each size serves."""
    own = {
        rule.axis: tuple(_ranges(rule, axes[rule.axis], runner.capacity(axes[rule.axis])))
        for rule in runner.buckets
        if isinstance(rule, ListedBuckets | MaxBucket)
    }
    return own | {scalar.name: scalar_ranges(scalar) for scalar in runner.scalars}


def scalar_ranges(scalar: Scalar) -> tuple[Interval, ...]:
    """The values of the batch that each of a scalar's graph values serves.

    A scalar that is no part of the key has one column of zeros.
    """
    match scalar.mode:
        case ConstScalar(value=value):
            return ((value, value),)
        case KeyScalar(values=values):
            return tuple((value, value) for value in values)
        case BucketScalar(sizes=sizes):
            starts = (min((0, *sizes)), *(size + 1 for size in sizes[:-1]))
            return tuple(zip(starts, sizes, strict=False))  # no size at all: no range
        case FreeScalar():
            return ((0, 0),)


def follow_order(runner: Runner) -> tuple[EqualsBuckets | PaddedBuckets, ...]:
    """The rules whose sizes follow other axes, each after those it follows."""
    rules = {rule.axis: rule for rule in runner.buckets}
    order = in_order_of_need({axis: follows(rule) for axis, rule in rules.items()})
    derived = (rules[axis] for axis in order)
    return tuple(rule for rule in derived if not isinstance(rule, ListedBuckets | MaxBucket))


def follows(rule: BucketRule) -> frozenset[str]:
    """The axes that a derived size is computed from."""
    if isinstance(rule, ListedBuckets | MaxBucket):
        return frozenset()
    return axes_named(rule.expr)


def derived_rows(rule: BucketRule, rows: Mapping[str, int]) -> int:
    """The padded rows of a derived axis, from the padded rows and key values of what it follows.

    Raises EvaluationError for a size without a value or below 0.
    """
    if isinstance(rule, ListedBuckets | MaxBucket):
        raise TypeError(f"axis {rule.axis} follows no other")
    symbol = Symbol.LIVE if isinstance(rule, EqualsBuckets) else Symbol.PADDED
    env = {Ref(symbol, name): count for name, count in rows.items()}
    env |= {Ref(Symbol.SCALAR, name): value for name, value in rows.items()}
    return evaluate_extent(rule.expr, env)


def _ranges(rule: BucketRule, axis: Axis, capacity: int) -> Iterator[Interval]:
    """The live counts that each size of an axis serves, least and greatest.

    In a group of ranks the largest count chooses the size: a rank's own may be any below it.
    """
    sizes = rule.sizes if isinstance(rule, ListedBuckets) else (capacity,)
    least = 0
    if axis.zero_key:
        yield 0, 0
        least = 1 if axis.group is None else 0
    for size in sizes:
        yield least, size
        least = size + 1 if axis.group is None else 0


def space_of(runner: Runner, axes: Axes, served: Mapping[str, Interval]) -> Space:
    """The counts that the ranges ``served`` leave to a batch."""
    most = {Ref(Symbol.AXIS_MAX, name): runner.capacity(axis) for name, axis in axes.items()}
    exprs = {
        rule.axis: None if expr is None else with_constants(expr, most)
        for rule in runner.buckets
        for expr in (count_expr(rule, axes[rule.axis]),)
    }
    stated = {Ref(Symbol.LIVE, axis): served[axis] for axis, expr in exprs.items() if expr is None}
    stated.update({Ref(Symbol.SCALAR, s.name): served[s.name] for s in runner.scalars})
    following = [(axis, exprs[axis]) for axis in count_order(runner, axes)]
    return Space(
        stated=stated,
        following=tuple(
            (Ref(Symbol.LIVE, axis), expr, served[axis])
            for axis, expr in following
            if expr is not None
        ),
        limits=tuple(limit.expr for limit in limits_of(runner, axes)),
    )
