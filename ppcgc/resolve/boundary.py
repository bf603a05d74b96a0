"""The boundary: the pipeline's keys, and fields of them that a runner overrides."""

from __future__ import annotations

from ppcgc.expr.tree import Expr, Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.ir import BoundaryKey
from ppcgc.nodes import Mapping, Node, Scalar
from ppcgc.resolve.context import (
    BUILD,
    Context,
    entries,
    get,
    items,
    need,
    optional_text,
    spans_of,
    text,
)
from ppcgc.resolve.names import check_name, check_unique
from ppcgc.resolve.tensors import resolve_axes_of, resolve_padding, resolve_shape


def resolve_boundary(context: Context, node: Node | None) -> tuple[BoundaryKey, ...]:
    """The keys of the pipeline's boundary."""
    names = [(text(name), name.span) for name in (need(key, "name") for key in items(node))]
    check_unique(context, "boundary key", names)
    keys = (_boundary_key(context, entry) for entry in items(node))
    return tuple(key for key in keys if key is not None)


def resolve_overrides(context: Context, node: Node | None) -> tuple[BoundaryKey, ...] | None:
    """The whole boundary of a runner that overrides fields of some keys; None without any."""
    if node is None:
        return None
    names = [need(override, "name") for override in items(node)]
    check_unique(context, "boundary key", [(text(name), name.span) for name in names])
    for name in names:
        context.known("boundary key", text(name), context.boundary_keys, name.span)
    overrides = {text(need(override, "name")): override for override in items(node)}
    shared = items(get(need(context.root, "pipeline"), "boundary"))
    merged = [_merged(key, overrides.get(text(need(key, "name")))) for key in shared]
    keys = (_boundary_key(context, key) for key in merged)
    return tuple(key for key in keys if key is not None)


def _merged(key: Node, override: Node | None) -> Node:
    if override is None:
        return key
    fields = {entry.key: entry for entry in (*entries(key), *entries(override))}
    return Mapping(entries=tuple(fields.values()), span=override.span)


def _boundary_key(context: Context, node: Node) -> BoundaryKey | None:
    name = text(need(node, "name"))
    check_name(context, "boundary key", name, need(node, "name").span)
    dtype = text(need(node, "dtype"))
    axes = resolve_axes_of(context, node)
    shape = resolve_shape(context, node, axes, f"boundary key '{name}'", Symbol.CUT)
    padding = resolve_padding(context, node, dtype, received=True)
    before = len(context.findings)
    when = _when(context, get(node, "when"))
    if axes is None or shape is None or padding is None or len(context.findings) > before:
        return None
    return BoundaryKey(
        name=name,
        axes=axes,
        shape=shape,
        dtype=dtype,
        padding=padding,
        when=when,
        content=_content(get(node, "content")),
        wire=optional_text(node, "wire") or "whole",
        by_runtime=optional_text(node, "by") == "runtime",
        doc=optional_text(node, "doc"),
        span=node.span,
        spans=spans_of(node),
    )


def _when(context: Context, node: Node | None) -> Expr | None:
    if node is None:
        return None
    scope = context.scope("in a condition of a boundary key", Symbol.CUT, *BUILD)
    return context.expression(node, scope, ExprType.CONDITION)


def _content(node: Node | None) -> str:
    if node is None:
        return "replicated"
    return text(node) if isinstance(node, Scalar) else "sharded"
