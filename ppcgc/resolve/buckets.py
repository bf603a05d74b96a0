"""Buckets and limits of a runner: sizes that are known when code is generated."""

from __future__ import annotations

from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.ir import BucketRule, EqualsBuckets, Limit, ListedBuckets, MaxBucket, PaddedBuckets
from ppcgc.nodes import Entry, Node, Scalar, Sequence
from ppcgc.resolve.constants import with_constants
from ppcgc.resolve.context import BUILD, Context, entries, get, integer, items, need, scalar, text


def resolve_buckets(context: Context, node: Node, known: dict[Ref, int]) -> tuple[BucketRule, ...]:
    found = []
    for entry in entries(node):
        if context.known("axis", entry.key, context.axes, entry.key_span):
            rule = _bucket_rule(context, entry, known)
            if rule is not None:
                found.append(rule)
    return tuple(found)


def _bucket_rule(context: Context, entry: Entry, known: dict[Ref, int]) -> BucketRule | None:
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
        expr = _early(context, equals, "in 'equals'", Symbol.LIVE, known)
        return None if expr is None else EqualsBuckets(axis=axis, expr=expr, span=equals.span)
    padded = need(node, "padded")
    expr = _early(context, padded, "in 'padded'", Symbol.PADDED, known)
    return None if expr is None else PaddedBuckets(axis=axis, expr=expr, span=padded.span)


def resolve_limits(context: Context, node: Node | None, known: dict[Ref, int]) -> tuple[Limit, ...]:
    found = []
    for item in items(node):
        expr = _early(context, item, "in a limit", Symbol.LIVE, known, ExprType.CONDITION)
        if expr is not None:
            found.append(Limit(expr=expr, text=text(item), span=item.span))
    return tuple(found)


def _early(
    context: Context,
    node: Node,
    place: str,
    bare_axis: Symbol,
    known: dict[Ref, int],
    wanted: ExprType = ExprType.INTEGER,
) -> Expr | None:
    """An expression over bare axis names whose other sizes are known at generation."""
    scope = context.scope(place, bare_axis, *BUILD, bare_axis=bare_axis)
    expr = context.expression(node, scope, wanted)
    if expr is None:
        return None
    return with_constants(context, expr, known, str(scalar(node)), node.span)
