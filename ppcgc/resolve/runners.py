"""Runners: buckets, limits, dispatch, and their slots, forward and outputs."""

from __future__ import annotations

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.ir import (
    BucketRule,
    Dispatch,
    EqualsBuckets,
    Limit,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    Place,
    Runner,
)
from ppcgc.nodes import Entry, Node, Scalar, Sequence
from ppcgc.resolve import rules
from ppcgc.resolve.constants import with_constants
from ppcgc.resolve.context import (
    Context,
    entries,
    flag,
    get,
    integer,
    items,
    need,
    optional_text,
    scalar,
    spans_of,
    text,
)
from ppcgc.resolve.forward import resolve_forward
from ppcgc.resolve.names import check_distinct_identifiers, check_name
from ppcgc.resolve.outputs import resolve_outputs
from ppcgc.resolve.slots import resolve_slots, slot_names

DEFAULT_MAX_GRAPHS = 64
_STAGE_WORDS = frozenset({"later"} | {place.value for place in Place})


def resolve_runners(context: Context, known: dict[Ref, int]) -> tuple[Runner, ...]:
    written = entries(need(context.root, "runners"))
    check_distinct_identifiers(context, "runner", [(e.key, e.key_span) for e in written])
    _check_stage_modules(context, written)
    return tuple(_runner(context, entry, known) for entry in written)


def _check_stage_modules(context: Context, written: tuple[Entry, ...]) -> None:
    """Runner ``a`` has modules such as ``a_first``: no other runner is called so."""
    names = {entry.key: entry.key_span for entry in written}
    for entry in written:
        stem, _, ending = entry.key.rpartition("_")
        if ending in _STAGE_WORDS and stem in names:
            message = f"runner '{entry.key}' is called like a stage of runner '{stem}'"
            related = (Related(names[stem], "the other runner"),)
            context.report(rules.DUPLICATE_NAME, entry.key_span, message, "rename one", related)


def _runner(context: Context, entry: Entry, known: dict[Ref, int]) -> Runner:
    """One runner. Parts that could not be resolved are left out after their findings."""
    node = entry.value
    check_name(context, "runner", entry.key, entry.key_span)
    slots = need(node, "slots")
    max_graphs = get(node, "max_graphs")
    return Runner(
        name=entry.key,
        buckets=_buckets(context, need(node, "buckets"), known),
        limits=_limits(context, get(node, "limits"), known),
        dispatch=_dispatch(context, get(node, "dispatch"), entry.key_span),
        max_graphs=DEFAULT_MAX_GRAPHS if max_graphs is None else integer(max_graphs),
        slots=resolve_slots(context, slots),
        forward=resolve_forward(context, need(node, "forward"), slot_names(slots)),
        outputs=resolve_outputs(context, need(node, "outputs")),
        doc=optional_text(node, "doc"),
        span=entry.key_span,
    )


# ---------------------------------------------------------------- buckets and limits


def _buckets(context: Context, node: Node, known: dict[Ref, int]) -> tuple[BucketRule, ...]:
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


def _limits(context: Context, node: Node | None, known: dict[Ref, int]) -> tuple[Limit, ...]:
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
    scope = context.scope(place, Symbol.DIM, Symbol.AXIS_MAX, bare_axis, bare_axis=bare_axis)
    expr = context.expression(node, scope, wanted)
    if expr is None:
        return None
    return with_constants(context, expr, known, str(scalar(node)), node.span)


# ---------------------------------------------------------------- dispatch


def _dispatch(context: Context, node: Node | None, runner_span: Span) -> Dispatch:
    if node is None:
        return Dispatch(span=runner_span)
    max_padding = _by_axis(context, get(node, "max_padding"))
    below = _by_axis(context, get(node, "always_replay_below"))
    return Dispatch(
        max_padding=tuple((axis, _number(value)) for axis, value in max_padding),
        always_replay_below=tuple((axis, integer(value)) for axis, value in below),
        over_capacity=optional_text(node, "over_capacity") or "error",
        require_graph=flag(node, "require_graph"),
        span=node.span,
        spans=spans_of(node),
    )


def _by_axis(context: Context, node: Node | None) -> list[tuple[str, Node]]:
    return [
        (entry.key, entry.value)
        for entry in entries(node)
        if context.known("axis", entry.key, context.axes, entry.key_span)
    ]


def _number(node: Node) -> float:
    value = scalar(node)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{node.span}: a number was promised")
    return float(value)
