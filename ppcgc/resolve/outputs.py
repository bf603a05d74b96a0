"""Outputs of the last stage."""

from __future__ import annotations

from ppcgc.ir import Keep, KeepClone, KeepRing, KeepView, Output
from ppcgc.nodes import Node
from ppcgc.resolve.context import Context, items, need, optional_text, spans_of, text
from ppcgc.resolve.names import check_name, check_unique
from ppcgc.resolve.tensors import resolve_axes_of, resolve_shape


def resolve_outputs(context: Context, node: Node) -> tuple[Output, ...]:
    last = need(node, "last")
    names = [(text(name), name.span) for name in (need(item, "name") for item in items(last))]
    check_unique(context, "output", names)
    outputs = (_output(context, item) for item in items(last))
    return tuple(output for output in outputs if output is not None)


def _output(context: Context, node: Node) -> Output | None:
    name = text(need(node, "name"))
    check_name(context, "output", name, need(node, "name").span)
    axes = resolve_axes_of(context, node)
    shape = resolve_shape(context, node, axes, f"output '{name}'")
    if axes is None or shape is None:
        return None
    return Output(
        name=name,
        axes=axes,
        shape=shape,
        dtype=text(need(node, "dtype")),
        path=_path(optional_text(node, "from")),
        keep=_keep(optional_text(node, "keep")),
        span=node.span,
        spans=spans_of(node),
    )


def _path(written: str | None) -> str | int | None:
    """``result`` as None, ``result.name`` as the name, ``result.2`` as the index."""
    if written is None or written == "result":
        return None
    part = written.removeprefix("result.")
    return int(part) if part.isdigit() else part


def _keep(written: str | None) -> Keep:
    if written is None or written == "view":
        return KeepView()
    if written == "clone":
        return KeepClone()
    return KeepRing(entries=int(written.removeprefix("ring(").removesuffix(")")))
