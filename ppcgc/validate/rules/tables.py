"""The plan's own bucket table of a runner, where its buckets are sound."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TypeAlias

from ppcgc.expr.evaluate import EvaluationError
from ppcgc.ir import Axis, Family, ListedBuckets, Runner
from ppcgc.plan.buckets import bucket_table
from ppcgc.plan.counts import counted_from
from ppcgc.plan.late import late_names
from ppcgc.plan.model import BucketPlan
from ppcgc.plan.reach import SearchError
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.facts import (
    MOST_COMBINATIONS,
    asks_unkeyed,
    axes_in,
    follows,
    in_order,
    scalar_values,
)
from ppcgc.validate.rules.settling import settled, settled_axes

Table: TypeAlias = tuple[BucketPlan, ...] | SearchError | None


def table_of(family: Family, runner: Runner) -> Table:
    """The plan's own bucket table, of the simplest build where only a build knows it.

    None where other rules find fault with the buckets, and where not even that is known.
    """
    return _sound_table(settled(family, runner), settled_axes(family))


def known_late(family: Family, runner: Runner) -> bool:
    """Does only a build know the sizes, even with every choice at its default?"""
    axes = {axis.name: axis for axis in settled_axes(family)}
    return bool(late_names(settled(family, runner), axes))


@lru_cache(maxsize=16)  # several rules ask for the same table
def _sound_table(runner: Runner, declared: tuple[Axis, ...]) -> Table:
    if not is_sound(runner, declared):
        return None
    try:
        return bucket_table(runner, {axis.name: axis for axis in declared})
    except SearchError as problem:
        return problem
    except EvaluationError:
        return None


def is_sound(runner: Runner, declared: tuple[Axis, ...]) -> bool:
    """Can the table be computed, as far as other rules and the build's numbers allow?"""
    axes = {axis.name: axis for axis in declared}
    sizes = {rule.axis: sorted(follows(rule)) for rule in runner.buckets}
    counts = {r.axis: sorted(counted_from(r, axes[r.axis])) for r in runner.buckets}
    for needs in (sizes, counts):
        if circles(needs) or any(set(names) - set(needs) for names in needs.values()):
            return False
    counted = frozenset[str]().union(*(axes_in(limit.expr) for limit in runner.limits))
    if counted - sizes.keys():
        return False
    ladders = [rule.sizes for rule in runner.buckets if isinstance(rule, ListedBuckets)]
    if not all(in_order(ladder) for ladder in ladders):
        return False
    values = [scalar_values(scalar) for scalar in runner.scalars]
    if not all(values):
        return False
    if prod(len(sizes) for sizes in (*ladders, *values)) > MOST_COMBINATIONS:
        return False
    return not asks_unkeyed(runner) and not late_names(runner, axes)
