"""The bucket table of a runner: which padded sizes can be asked for, and what captures them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from ppcgc.expr.evaluate import evaluate, evaluate_extent
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.expr.walk import refs
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
    Runner,
    Scalar,
)
from ppcgc.plan.intervals import Interval, impossible
from ppcgc.plan.model import BucketPlan


def bucket_table(runner: Runner, axes: Mapping[str, Axis]) -> tuple[BucketPlan, ...]:
    """Every reachable bucket, ascending by padded rows in the order of ``columns``.

    A combination that no live counts within ``limits`` can ask for gets no graph.
    """
    own = {
        rule.axis: tuple(_ranges(rule, axes[rule.axis], runner.capacity(axes[rule.axis])))
        for rule in runner.buckets
        if isinstance(rule, ListedBuckets | MaxBucket)
    }
    own.update({scalar.name: scalar_ranges(scalar) for scalar in runner.scalars})
    following, names, table = follow_order(runner), columns(runner), []
    for ranges in product(*own.values()):
        live = dict(zip(own, ranges, strict=True))
        padded = {name: high for name, (_, high) in live.items()}
        for rule in following:
            padded[rule.axis] = derived_rows(rule, padded)
            if not isinstance(rule, EqualsBuckets):
                live[rule.axis] = (0, padded[rule.axis])
        at_capture = _capture_rows(runner, following, live)
        if at_capture is not None:
            table.append(
                BucketPlan(
                    padded=tuple(padded[name] for name in names),
                    live=tuple(at_capture[name] for name in names),
                )
            )
    return tuple(sorted(table, key=lambda bucket: bucket.padded))


def columns(runner: Runner) -> tuple[str, ...]:
    """What a bucket's numbers stand for: axes in the order of ``buckets``, then scalars."""
    axes = tuple(rule.axis for rule in runner.buckets)
    return (*axes, *(scalar.name for scalar in runner.scalars))


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
            starts = (min(0, sizes[0]), *(size + 1 for size in sizes[:-1]))
            return tuple(zip(starts, sizes, strict=True))
        case FreeScalar():
            return ((0, 0),)


def follow_order(runner: Runner) -> tuple[BucketRule, ...]:
    """The axes that follow others, each after those it follows. A rule refused cycles before."""
    waiting = [rule for rule in runner.buckets if not isinstance(rule, ListedBuckets | MaxBucket)]
    known = {rule.axis for rule in runner.buckets} - {rule.axis for rule in waiting}
    ordered: list[BucketRule] = []
    while waiting:
        ready = next(rule for rule in waiting if follows(rule) <= known)
        waiting.remove(ready)
        known.add(ready.axis)
        ordered.append(ready)
    return tuple(ordered)


def follows(rule: BucketRule) -> frozenset[str]:
    """The axes that a derived axis is computed from."""
    if isinstance(rule, ListedBuckets | MaxBucket):
        return frozenset()
    return frozenset(
        ref.name for ref in refs(rule.expr) if ref.symbol in (Symbol.LIVE, Symbol.PADDED)
    )


def derived_rows(rule: BucketRule, rows: Mapping[str, int]) -> int:
    """The rows of a derived axis, from the rows of the axes it follows."""
    if isinstance(rule, ListedBuckets | MaxBucket):
        raise TypeError(f"axis {rule.axis} follows no other")
    symbols = (Symbol.LIVE, Symbol.PADDED)
    env = {Ref(symbol, axis): count for symbol in symbols for axis, count in rows.items()}
    return evaluate_extent(rule.expr, env)


def _ranges(rule: BucketRule, axis: Axis, capacity: int) -> Iterator[Interval]:
    """The live counts that each size of an axis serves, least and greatest."""
    sizes = rule.sizes if isinstance(rule, ListedBuckets) else (capacity,)
    least = 0
    if axis.zero_key:
        yield 0, 0
        least = 1
    for size in sizes:
        yield least, size
        least = size + 1


def _capture_rows(
    runner: Runner, following: tuple[BucketRule, ...], live: Mapping[str, Interval]
) -> dict[str, int] | None:
    """Live rows for a bucket's capture batch: as full as the limits allow; None if unreachable."""
    box: dict[Ref, Interval] = {Ref(Symbol.LIVE, axis): span for axis, span in live.items()}
    if any(impossible(limit.expr, box) for limit in runner.limits):
        return None
    candidates = [_with_following(corner, following) for corner in _corners(live)]
    for rows in candidates:
        env = {Ref(Symbol.LIVE, axis): count for axis, count in rows.items()}
        if all(evaluate(limit.expr, env) is True for limit in runner.limits):
            return rows
    return None if runner.limits and not _may_hold_inside(runner, live) else candidates[0]


def _corners(live: Mapping[str, Interval]) -> Iterator[dict[str, int]]:
    """Fullest first: the greatest of every axis, then fewer of them."""
    choices = [tuple(dict.fromkeys((high, low))) for low, high in live.values()]
    for counts in product(*choices):
        yield dict(zip(live, counts, strict=True))


def _with_following(rows: dict[str, int], following: tuple[BucketRule, ...]) -> dict[str, int]:
    rows = dict(rows)
    for rule in following:
        if isinstance(rule, EqualsBuckets):
            rows[rule.axis] = derived_rows(rule, rows)
    return rows


def _may_hold_inside(runner: Runner, live: Mapping[str, Interval]) -> bool:
    """Whether limits that hold at no corner could still hold between them: assume they could."""
    return any(high - low > 1 for low, high in live.values())
