"""The plan's own bucket table of a runner, where its buckets are sound."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TypeAlias

from ppcgc.expr.evaluate import EvaluationError
from ppcgc.ir import Axis, Family, ListedBuckets, Runner
from ppcgc.plan.buckets import bucket_table
from ppcgc.plan.counts import counted_from
from ppcgc.plan.model import BucketPlan
from ppcgc.plan.reach import SearchError
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.facts import (
    MOST_COMBINATIONS,
    follows,
    in_order,
    scalar_values,
)

Table: TypeAlias = tuple[BucketPlan, ...] | SearchError | None


def table_of(family: Family, runner: Runner) -> Table:
    """The plan's own bucket table; None where other rules find fault with the buckets."""
    return _sound_table(runner, family.axes)


@lru_cache(maxsize=16)  # several rules ask for the same table
def _sound_table(runner: Runner, declared: tuple[Axis, ...]) -> Table:
    axes = {axis.name: axis for axis in declared}
    sizes = {rule.axis: sorted(follows(rule)) for rule in runner.buckets}
    counts = {r.axis: sorted(counted_from(r, axes[r.axis])) for r in runner.buckets}
    for needs in (sizes, counts):
        if circles(needs) or any(set(names) - set(needs) for names in needs.values()):
            return None
    ladders = [rule.sizes for rule in runner.buckets if isinstance(rule, ListedBuckets)]
    if not all(in_order(ladder) for ladder in ladders):
        return None
    values = [scalar_values(scalar) for scalar in runner.scalars]
    if not all(values):
        return None
    if prod(len(sizes) for sizes in (*ladders, *values)) > MOST_COMBINATIONS:
        return None
    try:
        return bucket_table(runner, axes)
    except SearchError as problem:
        return problem
    except EvaluationError:
        return None
