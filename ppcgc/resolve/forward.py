"""Forward bindings: for each place, what each keyword of the model's forward gets."""

from __future__ import annotations

from ppcgc.ir import (
    Binding,
    BoundaryValue,
    BoundTo,
    Forward,
    HookValue,
    LiteralValue,
    PaddedValue,
    ScalarValue,
    SlotValue,
    ViewValue,
)
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve.context import Context, entries, get, need, scalar, text
from ppcgc.resolve.names import check_name
from ppcgc.resolve.sources import RunnerNames


def resolve_forward(context: Context, node: Node, names: RunnerNames) -> Forward:
    """``later`` binds middle and last, ``only`` defaults to first, a place of its own wins.

    Every place gets every keyword: those that it does not bind are None.
    """
    written = {entry.key: _bindings(context, entry.value, names) for entry in entries(node)}
    first = written.get("first", ())
    later = written.get("later", ())
    by_place = {
        "only": written.get("only", first),
        "first": first,
        "middle": written.get("middle", later),
        "last": written.get("last", later),
    }
    keywords = dict.fromkeys(
        binding.keyword for bindings in by_place.values() for binding in bindings
    )
    filled = {
        place: bindings + _unbound(bindings, tuple(keywords), node)
        for place, bindings in by_place.items()
    }
    return Forward(**filled, span=node.span)


def _unbound(
    bindings: tuple[Binding, ...], keywords: tuple[str, ...], node: Node
) -> tuple[Binding, ...]:
    bound = {binding.keyword for binding in bindings}
    return tuple(
        Binding(keyword=keyword, value=LiteralValue(value=None), span=node.span)
        for keyword in keywords
        if keyword not in bound
    )


def _bindings(context: Context, node: Node, names: RunnerNames) -> tuple[Binding, ...]:
    found = []
    for entry in entries(node):
        check_name(context, "forward keyword", entry.key, entry.key_span)
        value = _value(context, entry.value, names)
        if value is not None:
            found.append(Binding(keyword=entry.key, value=value, span=entry.value.span))
    return tuple(found)


def _value(context: Context, node: Node, names: RunnerNames) -> BoundTo | None:
    if not isinstance(node, Scalar):
        return LiteralValue(value=scalar(_literal(node)))
    root, _, name = text(node).partition(".")
    if root == "view":
        return ViewValue()
    if root == "slot":
        return _slot_value(context, name, names, node)
    if root == "scalar":
        known = context.known("scalar", name, names.scalars, node.span)
        return ScalarValue(name=name) if known else None
    if root == "hook":
        known = context.known("hook", name, names.hooks, node.span)
        return HookValue(name=name) if known else None
    if root == "padded":
        known = context.known("axis", name, context.axes, node.span)
        return PaddedValue(axis=name) if known else None
    if not name:
        return BoundaryValue(key=None)
    known = context.known("boundary key", name, context.boundary_keys, node.span)
    return BoundaryValue(key=name) if known else None


def _slot_value(context: Context, name: str, names: RunnerNames, node: Node) -> SlotValue | None:
    known = context.known("slot", name, names.slots, node.span)
    return SlotValue(name=name) if known else None


def _literal(node: Node) -> Node:
    value = get(node, "literal")
    return need(node, "literal") if value is None else value
