"""What slots, boundary keys and outputs share: axis, shape, padding."""

from __future__ import annotations

from ppcgc.expr.affine import affine_expr, affine_in
from ppcgc.expr.names import Scope
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    Extent,
    FillPadding,
    KeepPadding,
    OneAxisPadding,
    RepeatLastPadding,
    ZeroPadding,
)
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve import rules
from ppcgc.resolve.context import BUILD, Context, get, items, need, scalar, text
from ppcgc.resolve.names import check_unique


def resolve_axes_of(context: Context, node: Node) -> tuple[str, ...] | None:
    """The axes that pad a tensor: none, one or two; None after a finding."""
    word = need(node, "axis")
    if isinstance(word, Scalar) and text(word) == "none":
        return ()
    names = [word] if isinstance(word, Scalar) else items(word)
    known = [context.known("axis", text(name), context.axes, name.span) for name in names]
    check_unique(context, "axis", [(text(name), name.span) for name in names])
    axes = tuple(text(name) for name in names)
    return axes if all(known) and len(set(axes)) == len(axes) else None


def resolve_shape(
    context: Context, node: Node, axes: tuple[str, ...] | None, what: str, *more: Symbol
) -> tuple[Extent, ...] | None:
    """The extents of a tensor, by default its axes alone; None after a finding.

    ``more`` are symbols that are legal in this shape besides those of every shape.
    """
    written = get(node, "shape")
    if written is None:
        return _default_shape(context, node, axes, what)
    extents = [_extent(context, entry, more) for entry in items(written)]
    whole = tuple(extent for extent in extents if extent is not None)
    return whole if len(whole) == len(extents) else None


def _default_shape(
    context: Context, node: Node, axes: tuple[str, ...] | None, what: str
) -> tuple[Extent, ...] | None:
    if axes is None:
        return None
    span = need(node, "axis").span
    if not axes:
        message = f"{what} has no axis and no shape"
        context.report(
            rules.EXTENT_FORM, span, message, "state its shape, for example 'shape: [1]'"
        )
        return None
    return tuple(
        Extent(expr=Ref(Symbol.PADDED, axis), axis=axis, scale=1, offset=0, span=span)
        for axis in axes
    )


def _extent(context: Context, node: Node, more: tuple[Symbol, ...]) -> Extent | None:
    scope = context.scope("in a shape", Symbol.PADDED, *BUILD, *more, bare_axis=Symbol.PADDED)
    expr = context.expression(node, scope)
    if expr is None:
        return None
    axes = sorted({ref.name for ref in refs(expr) if ref.symbol is Symbol.PADDED})
    if not axes:
        return Extent(expr=expr, span=node.span)
    if len(axes) > 1:
        message = f"one dimension carries {len(axes)} axes: {', '.join(axes)}"
        context.report(rules.EXTENT_FORM, node.span, message, "give each axis its own dimension")
        return None
    return _axis_extent(context, expr, axes[0], node)


def _axis_extent(context: Context, expr: Expr, axis: str, node: Node) -> Extent | None:
    written, span = scalar(node), node.span
    affine = affine_in(expr, Ref(Symbol.PADDED, axis))
    help = f"write a * {axis} + b with an integer a >= 1 and an integer b >= 0"
    if affine is None:
        message = f"'{written}' is not of the form a * {axis} + b"
        context.report(rules.EXTENT_FORM, span, message, help)
        return None
    if affine.scale < 1 or affine.offset < 0:
        message = f"'{written}' is {affine.scale} * {axis} + {affine.offset}"
        context.report(rules.EXTENT_FORM, span, message, help)
        return None
    rows = affine_expr(affine, Ref(Symbol.PADDED, axis))
    return Extent(expr=rows, axis=axis, scale=affine.scale, offset=affine.offset, span=span)


def resolve_padding(
    context: Context,
    node: Node,
    dtype: str,
    *,
    received: bool = False,
    scalars: frozenset[str] = frozenset(),
) -> OneAxisPadding | None:
    """The padding of a tensor; None when it was left out or after a finding.

    What is ``received`` is reset inside the captured region, where host counts are frozen: its
    fill speaks of no step's rows and of none of the runner's ``scalars``.
    """
    written = get(node, "padding")
    if written is None:
        return None
    if received:
        scope = context.scope("in a padding of the boundary", *BUILD)
    else:
        symbols = (Symbol.LIVE, Symbol.PADDED, Symbol.SCALAR)
        scope = context.scope("in a padding", *symbols, *BUILD, scalars=scalars)
    return one_axis_padding(context, written, dtype, scope)


def one_axis_padding(
    context: Context, written: Node, dtype: str, scope: Scope
) -> OneAxisPadding | None:
    """The padding of the rows of one axis; None after a finding."""
    if isinstance(written, Scalar):
        return ZeroPadding() if text(written) == "zero" else RepeatLastPadding()
    why = get(written, "keep")
    if why is not None:
        return KeepPadding(why=text(why), initial=literal(need(written, "initial")))
    value = context.value(need(written, "fill"), scope, dtype)
    return None if value is None else FillPadding(value=value)


def literal(node: Node) -> int | float | bool:
    """A literal number or boolean."""
    value = scalar(node)
    if value is None or isinstance(value, str):
        raise TypeError(f"{node.span}: a number was promised")
    return value
