"""Slots: the words of one entry of ``slots`` to a frozen :class:`~ppcgc.ir.Slot`."""

from __future__ import annotations

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.names import Scope
from ppcgc.expr.tree import Expr, Symbol
from ppcgc.ir import (
    STAGE_GROUPS,
    Absent,
    AbsentEager,
    AbsentError,
    AbsentFill,
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    GraphSource,
    Place,
    Residency,
    Role,
    RoleUse,
    Slot,
    Source,
)
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve import rules
from ppcgc.resolve.context import (
    Context,
    flag,
    get,
    items,
    need,
    optional_text,
    spans_of,
    text,
)
from ppcgc.resolve.names import check_name, check_unique
from ppcgc.resolve.sizes import checked_path
from ppcgc.resolve.tensors import literal, resolve_axes_of, resolve_padding, resolve_shape


def slot_names(node: Node) -> tuple[str, ...]:
    """The names that the entries of ``slots`` declare, sound or not."""
    return tuple(text(need(slot, "name")) for slot in items(node))


def resolve_slots(context: Context, node: Node) -> tuple[Slot, ...]:
    names = [(text(name), name.span) for name in (need(slot, "name") for slot in items(node))]
    check_unique(context, "slot", names)
    _check_groups(context, names)
    slots = (_slot(context, entry) for entry in items(node))
    return tuple(slot for slot in slots if slot is not None)


def _check_groups(context: Context, names: list[tuple[str, Span]]) -> None:
    """A name is a slot or a group of slots, not both; ``a.b`` and ``a_b`` are one identifier."""
    plain = {name: span for name, span in names if "." not in name}
    for name, span in names:
        group = name.partition(".")[0]
        flat = name.replace(".", "_")
        if "." in name and group in plain:
            message = f"'{group}' is a slot and the group of '{name}'"
            related = (Related(plain[group], "the slot"),)
            context.report(rules.DUPLICATE_NAME, span, message, "rename one", related)
        if "." in name and flat in plain:
            message = f"slots '{name}' and '{flat}' become one identifier"
            related = (Related(plain[flat], "the other slot"),)
            context.report(rules.DUPLICATE_NAME, span, message, "rename one", related)


def _slot(context: Context, node: Node) -> Slot | None:
    """One slot; None after a finding. Every word is read, so that all findings come at once."""
    before = len(context.findings)
    name_node = need(node, "name")
    written = text(name_node)
    group, _, name = written.rpartition(".")
    for part in written.split("."):
        check_name(context, "slot", part, name_node.span)
    dtype = text(need(node, "dtype"))
    axes = resolve_axes_of(context, node)
    shape = resolve_shape(context, node, axes, f"slot '{written}'")
    padding = resolve_padding(context, node, dtype)
    source = _source(context, need(node, "source"), dtype)
    role = _role(context, node)
    capture_fill = _capture_fill(context, node, dtype)
    if axes is None or shape is None or source is None or len(context.findings) > before:
        return None
    return Slot(
        name=name,
        group=group or None,
        axes=axes,
        shape=shape,
        dtype=dtype,
        padding=padding,
        source=source,
        role=role,
        stages=_stages(node),
        residency=Residency(optional_text(node, "residency") or "device"),
        absent=_absent(node),
        mutable=flag(node, "mutable"),
        cast=flag(node, "cast"),
        capture_fill=capture_fill,
        doc=optional_text(node, "doc"),
        span=node.span,
        spans=spans_of(node),
    )


def _source(context: Context, node: Node, dtype: str) -> Source | None:
    if not isinstance(node, Scalar):
        return _computed_source(context, node, dtype)
    word = text(node)
    if word == "caller":
        return CallerSource()
    if word == "graph":
        return GraphSource()
    path = checked_path(context, node, "batch")
    if path is not None:
        return BatchSource(path=path)
    key = word.removeprefix("boundary.")
    if not context.known("boundary key", key, context.boundary_keys, node.span):
        return None
    return BoundarySource(key=key)


def _computed_source(context: Context, node: Node, dtype: str) -> Source | None:
    const = get(node, "const")
    if const is not None:
        fixed = context.scope("in a constant", Symbol.DIM, Symbol.AXIS_MAX)
        value = context.value(const, fixed, dtype)
        return None if value is None else ConstSource(value=value)
    scope = context.scope(
        "in a compute", Symbol.DIM, Symbol.LIVE, Symbol.PADDED, Symbol.AXIS_MAX, Symbol.ROW
    )
    computed = context.value(need(node, "compute"), scope, dtype)
    return None if computed is None or isinstance(computed, float) else ComputeSource(expr=computed)


def _role(context: Context, node: Node) -> RoleUse:
    role = get(node, "role")
    of = get(node, "of")
    span = (role or need(node, "name")).span
    name, kind = (None, None) if of is None else _of(context, of)
    return RoleUse(
        role=Role(text(role)) if role is not None else Role.DATA,
        of=name,
        of_kind=kind,
        consumer_skips_negative=flag(node, "consumer_skips_negative"),
        span=span,
    )


def _of(context: Context, node: Node) -> tuple[str | None, str | None]:
    word = text(node)
    if word.startswith("state."):
        name = word.removeprefix("state.")
        known = context.known("state", name, context.states, node.span)
        return (name, "state") if known else (None, None)
    if word in context.dims:
        return word, "dim"
    if word in context.axes:
        return word, "axis"
    states = {f"state.{state}" for state in context.states}
    context.known("dim, axis or state", word, context.dims | context.axes | states, node.span)
    return None, None


def _stages(node: Node) -> frozenset[Place]:
    written = get(node, "stages")
    if written is None:
        return STAGE_GROUPS["all"]
    words = [written] if isinstance(written, Scalar) else items(written)
    return frozenset[Place]().union(*(STAGE_GROUPS[text(word)] for word in words))


def _absent(node: Node) -> Absent:
    written = get(node, "absent")
    if written is None:
        return AbsentError()
    if isinstance(written, Scalar):
        return AbsentEager() if text(written) == "eager" else AbsentError()
    return AbsentFill(value=literal(need(written, "fill")))


def _capture_fill(context: Context, node: Node, dtype: str) -> Expr | float | None:
    capture = get(node, "capture")
    if capture is None:
        return None
    return context.value(need(capture, "fill"), _capture_scope(context), dtype)


def _capture_scope(context: Context) -> Scope:
    return context.scope("in a capture value", Symbol.DIM, Symbol.PADDED, Symbol.AXIS_MAX)
