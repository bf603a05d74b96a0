"""A runner with the numbers of the simplest build: what can be checked before there is one.

Options have their defaults and a group has one rank: a spec must hold for that at least. Sizes
that a config or the caller gives stay unknown; what follows from them is checked when a runner
is built, or by ``generate --bind``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ppcgc.expr.evaluate import EvaluationError, Value, evaluate
from ppcgc.expr.tree import Bool, Expr, Int, Ref, Symbol, Text
from ppcgc.expr.walk import replace_leaves
from ppcgc.ir import (
    Axis,
    BucketRule,
    ComputedCount,
    EqualsBuckets,
    ExprDim,
    Family,
    PaddedBuckets,
    Runner,
)


def settled(family: Family, runner: Runner) -> Runner:
    """The runner with numbers in its sizes and limits, as far as they are known."""
    known = _simplest_build(family)
    return replace(
        runner,
        buckets=tuple(_sized(rule, known) for rule in runner.buckets),
        limits=tuple(replace(limit, expr=_with(limit.expr, known)) for limit in runner.limits),
    )


def settled_axes(family: Family) -> tuple[Axis, ...]:
    """The axes with numbers in the expressions of their live counts."""
    known = _simplest_build(family)
    return tuple(
        replace(axis, live=ComputedCount(expr=_with(axis.live.expr, known)))
        if isinstance(axis.live, ComputedCount)
        else axis
        for axis in family.axes
    )


def _simplest_build(family: Family) -> dict[Ref, Value]:
    known: dict[Ref, Value] = {}
    known |= {Ref(Symbol.OPTION, option.name): option.default for option in family.options}
    known |= {Ref(Symbol.PARALLEL, f"{group}.size"): 1 for group in family.parallel}
    computed = [(d.name, d.source.expr) for d in family.dims if isinstance(d.source, ExprDim)]
    for _ in computed:  # each pass knows at least one more level of a chain
        for name, expr in computed:
            try:
                known[Ref(Symbol.DIM, name)] = evaluate(expr, known)
            except EvaluationError:
                continue
    return known


def _sized(rule: BucketRule, known: Mapping[Ref, Value]) -> BucketRule:
    if isinstance(rule, EqualsBuckets | PaddedBuckets):
        return replace(rule, expr=_with(rule.expr, known))
    return rule


def _with(expr: Expr, known: Mapping[Ref, Value]) -> Expr:
    def change(leaf: Expr) -> Expr:
        if not isinstance(leaf, Ref) or leaf not in known:
            return leaf
        value = known[leaf]
        if isinstance(value, bool):
            return Bool(value)
        return Int(value) if isinstance(value, int) else Text(value)

    return replace_leaves(expr, change)
