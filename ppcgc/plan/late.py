"""What of a runner's sizes only a build knows: then its bucket table is computed at the build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import Axis, EqualsBuckets, PaddedBuckets, Runner
from ppcgc.plan.counts import count_expr
from ppcgc.plan.limits import limits_of

_LATE = (Symbol.DIM, Symbol.OPTION, Symbol.PARALLEL)


def late_names(runner: Runner, axes: Mapping[str, Axis]) -> frozenset[Ref]:
    """Dims, options and sizes of groups of ranks that decide which buckets there are."""
    named = frozenset[Ref]().union(*(refs(expr) for expr in _deciding(runner, axes)))
    return frozenset(ref for ref in named if ref.symbol in _LATE)


def _deciding(runner: Runner, axes: Mapping[str, Axis]) -> Iterator[Expr]:
    """Sizes, live counts and limits: what the bucket table is computed from."""
    for rule in runner.buckets:
        if isinstance(rule, EqualsBuckets | PaddedBuckets):
            yield rule.expr
        live = count_expr(rule, axes[rule.axis])
        if live is not None:
            yield live
    yield from (limit.expr for limit in limits_of(runner, axes))
