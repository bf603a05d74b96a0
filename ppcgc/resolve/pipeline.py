"""The pipeline: layers, stage ranges, boundary."""

from __future__ import annotations

from ppcgc.expr.tree import Expr, Symbol
from ppcgc.ir import BoundaryKey, ConfigDim, EvenStages, Pipeline, StageRange
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve.context import (
    Context,
    get,
    integer,
    items,
    need,
    optional_text,
    spans_of,
    text,
)
from ppcgc.resolve.names import check_name, check_unique
from ppcgc.resolve.sizes import checked_path
from ppcgc.resolve.tensors import resolve_axes_of, resolve_padding, resolve_shape


def resolve_pipeline(context: Context) -> Pipeline | None:
    node = need(context.root, "pipeline")
    count = _layer_count(context, need(need(node, "layers"), "count"))
    boundary = _boundary(context, get(node, "boundary"))
    stages = _stages(node)
    if count is None:
        return None
    return Pipeline(layer_count=count, stages=stages, boundary=boundary, span=node.span)


def _layer_count(context: Context, node: Node) -> Expr | ConfigDim | None:
    path = checked_path(context, node, "config")
    if path is not None:
        return ConfigDim(path=path)
    return context.expression(node, context.scope("in a number of layers", Symbol.DIM))


def _stages(node: Node) -> EvenStages | tuple[StageRange, ...]:
    written = get(node, "stages")
    if written is None or isinstance(written, Scalar):
        return EvenStages(span=(written or node).span)
    ranges = []
    for item in items(written):
        start, end = items(item)
        ranges.append(StageRange(start=integer(start), end=integer(end), span=item.span))
    return tuple(ranges)


def _boundary(context: Context, node: Node | None) -> tuple[BoundaryKey, ...]:
    names = [(text(name), name.span) for name in (need(key, "name") for key in items(node))]
    check_unique(context, "boundary key", names)
    keys = (_boundary_key(context, entry) for entry in items(node))
    return tuple(key for key in keys if key is not None)


def _boundary_key(context: Context, node: Node) -> BoundaryKey | None:
    name = text(need(node, "name"))
    check_name(context, "boundary key", name, need(node, "name").span)
    dtype = text(need(node, "dtype"))
    axes = resolve_axes_of(context, node)
    shape = resolve_shape(context, node, axes, f"boundary key '{name}'")
    padding = resolve_padding(context, node, dtype)
    if axes is None or shape is None or padding is None:
        return None
    return BoundaryKey(
        name=name,
        axes=axes,
        shape=shape,
        dtype=dtype,
        padding=padding,
        doc=optional_text(node, "doc"),
        span=node.span,
        spans=spans_of(node),
    )
