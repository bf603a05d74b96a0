"""Kinds of layer: which layers of the model belong to each."""

from __future__ import annotations

from ppcgc.expr.tree import Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.ir import KindIds, KindIf, KindWhere, LayerKind
from ppcgc.nodes import Node
from ppcgc.resolve.context import Context, entries, get, integer, items, need, scalar
from ppcgc.resolve.names import check_name
from ppcgc.resolve.sizes import checked_path


def resolve_kinds(context: Context, layers: Node) -> tuple[LayerKind, ...]:
    found = []
    for entry in entries(get(layers, "kinds")):
        check_name(context, "layer kind", entry.key, entry.key_span)
        rule = _rule(context, entry.value)
        if rule is not None:
            found.append(LayerKind(name=entry.key, rule=rule, span=entry.key_span))
    return tuple(found)


def _rule(context: Context, node: Node) -> KindIds | KindWhere | KindIf | None:
    ids = get(node, "ids")
    if ids is not None:
        return KindIds(ids=tuple(integer(layer) for layer in items(ids)))
    condition = get(node, "if")
    if condition is not None:
        scope = context.scope("in a kind of layer", Symbol.LAYER, Symbol.DIM)
        expr = context.expression(condition, scope, ExprType.CONDITION)
        return None if expr is None else KindIf(expr=expr)
    path = checked_path(context, need(node, "where"), "config")
    value = scalar(need(node, "is"))
    if path is None or not isinstance(value, str | int | bool):
        return None
    return KindWhere(path=path, value=value)
