"""The pipeline: layers and their kinds, stage ranges, boundary."""

from __future__ import annotations

from ppcgc.expr.tree import Expr, Symbol
from ppcgc.ir import ConfigDim, EvenStages, Pipeline, StageRange
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve.boundary import resolve_boundary
from ppcgc.resolve.context import Context, get, integer, items, need
from ppcgc.resolve.kinds import resolve_kinds
from ppcgc.resolve.sizes import config_dim


def resolve_pipeline(context: Context) -> Pipeline | None:
    node = need(context.root, "pipeline")
    layers = need(node, "layers")
    count = _layer_count(context, need(layers, "count"))
    kinds = resolve_kinds(context, layers)
    boundary = resolve_boundary(context, get(node, "boundary"))
    stages = _stages(node)
    if count is None:
        return None
    return Pipeline(
        layer_count=count, stages=stages, boundary=boundary, kinds=kinds, span=node.span
    )


def _layer_count(context: Context, node: Node) -> Expr | ConfigDim | None:
    read = config_dim(context, node)
    if read is not None:
        return read
    scope = context.scope("in a number of layers", Symbol.DIM, alone=("config.*",))
    return context.expression(node, scope)


def _stages(node: Node) -> EvenStages | tuple[StageRange, ...]:
    written = get(node, "stages")
    if written is None or isinstance(written, Scalar):
        return EvenStages(span=(written or node).span)
    ranges = []
    for item in items(written):
        start, end = items(item)
        ranges.append(StageRange(start=integer(start), end=integer(end), span=item.span))
    return tuple(ranges)
