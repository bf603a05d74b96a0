"""Eligibility: conditions of the batch that make a step eager."""

from __future__ import annotations

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Symbol
from ppcgc.ir import EagerWhen
from ppcgc.nodes import Entry, Node, Scalar
from ppcgc.resolve import rules
from ppcgc.resolve.context import BUILD, Context, entries, items, scalar, text
from ppcgc.resolve.names import check_name
from ppcgc.resolve.sizes import checked_path

_FORM = "write above: [batch.<path>, e]"


def resolve_eager_when(
    context: Context, node: Node | None, scalars: frozenset[str], hooks: frozenset[str]
) -> tuple[EagerWhen, ...]:
    """The conditions of ``eager_when``, in the order written."""
    found = (_condition(context, entry, scalars, hooks) for entry in entries(node))
    return tuple(condition for condition in found if condition is not None)


def _condition(
    context: Context, entry: Entry, scalars: frozenset[str], hooks: frozenset[str]
) -> EagerWhen | None:
    reason, node = entry.key, entry.value
    check_name(context, "reason", reason, entry.key_span)
    if isinstance(node, Scalar):
        hook = text(node).removeprefix("hook.")
        known = context.known("hook", hook, hooks, node.span)
        return EagerWhen(reason=reason, kind="hook", hook=hook, span=node.span) if known else None
    (form,) = entries(node)
    if form.key == "above":
        return _above(context, reason, form.value, scalars, node.span)
    path = checked_path(context, form.value, "batch")
    return (
        None if path is None else EagerWhen(reason=reason, kind=form.key, path=path, span=node.span)
    )


def _above(
    context: Context, reason: str, node: Node, scalars: frozenset[str], span: Span
) -> EagerWhen | None:
    written, limit = items(node)
    path = checked_path(context, written, "batch")
    if path is None:
        message = f"'{scalar(written)}' is no path of the batch"
        context.report(rules.BAD_EXPRESSION, written.span, message, _FORM)
        return None
    scope = context.scope("in 'above'", Symbol.LIVE, Symbol.SCALAR, *BUILD, scalars=scalars)
    expr = context.expression(limit, scope)
    return (
        None
        if expr is None
        else EagerWhen(reason=reason, kind="above", path=path, above=expr, span=span)
    )
