"""Every expression of a family, and what expressions name."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.expr.tree import Below, Expr, Name, Symbol
from ppcgc.expr.walk import nodes, refs
from ppcgc.ir import (
    BoundaryKey,
    ComputedCount,
    ConfigDim,
    EqualsBuckets,
    ExprDim,
    Family,
    FillPadding,
    KindIf,
    PaddedBuckets,
    Runner,
)
from ppcgc.validate.rules.facts import expressions, slots, tensors


def all_expressions(family: Family) -> Iterator[Expr]:
    """Every expression that a spec holds; dims that are integers are put in by now."""
    yield from (dim.source.expr for dim in family.dims if isinstance(dim.source, ExprDim))
    yield from (state.rows for state in family.states)
    if not isinstance(family.pipeline.layer_count, ConfigDim):
        yield family.pipeline.layer_count
    for kind in family.pipeline.kinds:
        if isinstance(kind.rule, KindIf):
            yield kind.rule.expr
    for tensor in tensors(family):
        yield from (extent.expr for extent in tensor.node.shape)
        if isinstance(tensor.node, BoundaryKey) and isinstance(tensor.node.padding, FillPadding):
            value = tensor.node.padding.value
            yield from () if isinstance(value, float) else (value,)
    for _, slot in slots(family):
        yield from (expr for expr, _ in expressions(slot))
    for axis in family.axes:
        if isinstance(axis.live, ComputedCount):
            yield axis.live.expr
    yield from (key.when for key in family.pipeline.boundary if key.when is not None)
    for runner in family.runners:
        yield from _of_runner(runner)


def _of_runner(runner: Runner) -> Iterator[Expr]:
    yield from (r.expr for r in runner.buckets if isinstance(r, EqualsBuckets | PaddedBuckets))
    yield from (limit.expr for limit in runner.limits)
    yield from (slot.when for slot in runner.slots if slot.when is not None)
    yield from (key.when for key in runner.boundary or () if key.when is not None)
    yield from (hook.workspace for hook in runner.hooks if hook.workspace is not None)
    yield from (each.above for each in runner.eager_when if each.above is not None)
    for scalar in runner.scalars:
        if isinstance(scalar.source, ComputedCount):
            yield scalar.source.expr


def kinds_in(expr: Expr) -> frozenset[str]:
    """The kinds of layer that an expression names."""
    found = set()
    for node in nodes(expr):
        match node:
            case Name(("kinds", kind)) | Below(kind, _):
                found.add(kind)
    return frozenset(found)


def names_cut(expr: Expr) -> bool:
    """Does the value differ from cut to cut?"""
    return any(ref.symbol is Symbol.CUT for ref in refs(expr))
