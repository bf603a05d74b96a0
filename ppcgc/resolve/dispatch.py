"""Dispatch: when a step may replay."""

from __future__ import annotations

from ppcgc.diagnostics.model import Span
from ppcgc.ir import Dispatch
from ppcgc.nodes import Node
from ppcgc.resolve.context import (
    Context,
    entries,
    flag,
    get,
    integer,
    optional_text,
    scalar,
    spans_of,
)


def resolve_dispatch(context: Context, node: Node | None, runner_span: Span) -> Dispatch:
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
