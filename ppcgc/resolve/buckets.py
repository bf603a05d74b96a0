"""Buckets and limits of a runner.

What is an integer when code is generated becomes one. Sizes of a config, options and sizes of
groups of ranks stay names: the build computes the bucket table then.
"""

from __future__ import annotations

from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.expr.walk import with_constants
from ppcgc.ir import BucketRule, EqualsBuckets, Limit, ListedBuckets, MaxBucket, PaddedBuckets
from ppcgc.ir import Scalar as KeyedScalar
from ppcgc.nodes import Entry, Node, Scalar, Sequence
from ppcgc.resolve.context import BUILD, Context, entries, get, integer, items, need, text


def resolve_buckets(
    context: Context, node: Node, known: dict[Ref, int], scalars: tuple[KeyedScalar, ...]
) -> tuple[BucketRule, ...]:
    found = []
    for entry in entries(node):
        if context.known("axis", entry.key, context.axes, entry.key_span):
            rule = _bucket_rule(context, entry, known, scalars)
            if rule is not None:
                found.append(rule)
    return tuple(found)


def _bucket_rule(
    context: Context, entry: Entry, known: dict[Ref, int], scalars: tuple[KeyedScalar, ...]
) -> BucketRule | None:
    axis, node = entry.key, entry.value
    if isinstance(node, Sequence):
        return ListedBuckets(
            axis=axis,
            sizes=tuple(integer(size) for size in node.items),
            span=node.span,
            size_spans=tuple(size.span for size in node.items),
        )
    if isinstance(node, Scalar):
        return MaxBucket(axis=axis, span=node.span)
    equals = get(node, "equals")
    if equals is not None:
        expr = _counted(context, equals, "in 'equals'", Symbol.LIVE, known, scalars)
        return None if expr is None else EqualsBuckets(axis=axis, expr=expr, span=equals.span)
    padded = need(node, "padded")
    expr = _counted(context, padded, "in 'padded'", Symbol.PADDED, known, scalars)
    return None if expr is None else PaddedBuckets(axis=axis, expr=expr, span=padded.span)


def resolve_limits(
    context: Context, node: Node | None, known: dict[Ref, int], scalars: tuple[KeyedScalar, ...]
) -> tuple[Limit, ...]:
    found = []
    for item in items(node):
        expr = _counted(
            context, item, "in a limit", Symbol.LIVE, known, scalars, ExprType.CONDITION
        )
        if expr is not None:
            found.append(Limit(expr=expr, text=text(item), span=item.span))
    return tuple(found)


def _counted(
    context: Context,
    node: Node,
    place: str,
    bare_axis: Symbol,
    known: dict[Ref, int],
    scalars: tuple[KeyedScalar, ...],
    wanted: ExprType = ExprType.INTEGER,
) -> Expr | None:
    """An expression over bare axis names, scalars in the key, and what a build knows."""
    names = frozenset(each.name for each in scalars)
    scope = context.scope(
        place, bare_axis, Symbol.SCALAR, *BUILD, bare_axis=bare_axis, scalars=names
    )
    expr = context.expression(node, scope, wanted)
    return None if expr is None else with_constants(expr, known)
