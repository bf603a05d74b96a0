"""Slots: the words of one entry of ``slots`` to a frozen :class:`~ppcgc.ir.Slot`."""

from __future__ import annotations

from ppcgc.diagnostics.model import Related, Span
from ppcgc.expr.tree import Compare, Expr, Int, Logical, Ref, Symbol
from ppcgc.expr.typing import ExprType
from ppcgc.ir import (
    AbsentKey,
    Padding,
    PaddingByAxis,
    Residency,
    Role,
    RoleUse,
    Slot,
)
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve import rules
from ppcgc.resolve.context import (
    BUILD,
    Context,
    entries,
    flag,
    get,
    items,
    need,
    optional_text,
    scalar,
    spans_of,
    text,
)
from ppcgc.resolve.names import check_distinct_identifiers, check_name, check_unique
from ppcgc.resolve.sources import RunnerNames, resolve_absent, resolve_mirror, resolve_source
from ppcgc.resolve.stages import resolve_owners, resolve_places
from ppcgc.resolve.tensors import (
    one_axis_padding,
    resolve_axes_of,
    resolve_padding,
    resolve_shape,
)


def slot_names(node: Node) -> tuple[str, ...]:
    """The names that the entries of ``slots`` declare, sound or not."""
    return tuple(text(need(slot, "name")) for slot in items(node))


def resolve_slots(context: Context, node: Node, runner: RunnerNames) -> tuple[Slot, ...]:
    names = [(text(name), name.span) for name in (need(slot, "name") for slot in items(node))]
    check_unique(context, "slot", names)
    _check_groups(context, names)
    _check_twins(context, node, names)
    slots = (_slot(context, entry, runner) for entry in items(node))
    return tuple(slot for slot in slots if slot is not None)


def _check_groups(context: Context, names: list[tuple[str, Span]]) -> None:
    """A name is a slot or a group of slots, not both; ``a.b`` and ``a_b`` are one identifier."""
    plain = {name: span for name, span in names if "." not in name}
    groups = [(name.partition(".")[0], span) for name, span in names if "." in name]
    check_distinct_identifiers(context, "group", groups)
    flat: dict[str, tuple[str, Span]] = {}
    for name, span in names:
        group = name.partition(".")[0]
        if "." in name and group in plain:
            message = f"'{group}' is a slot and the group of '{name}'"
            related = (Related(plain[group], "the slot"),)
            context.report(rules.DUPLICATE_NAME, span, message, "rename one", related)
        other, other_span = flat.setdefault(name.replace(".", "_"), (name, span))
        if other != name:
            message = f"slots '{name}' and '{other}' become one identifier"
            related = (Related(other_span, "the other slot"),)
            context.report(rules.DUPLICATE_NAME, span, message, "rename one", related)


def _check_twins(context: Context, node: Node, names: list[tuple[str, Span]]) -> None:
    """The host twin of ``x`` is ``x_host`` on the view, so nothing else may be."""
    declared = dict(names) | {name.partition(".")[0]: span for name, span in names if "." in name}
    for slot in items(node):
        twin = f"{text(need(slot, 'name'))}_host"
        mirror = get(slot, "mirror")
        if mirror is not None and twin in declared:
            message = f"'{twin}' is a slot and the host twin of '{twin.removesuffix('_host')}'"
            related = (Related(mirror.span, "the twin"),)
            context.report(rules.DUPLICATE_NAME, declared[twin], message, "rename one", related)


def _slot(context: Context, node: Node, runner: RunnerNames) -> Slot | None:
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
    padding = _padding(context, node, dtype, axes, runner)
    source = resolve_source(context, need(node, "source"), dtype, runner)
    role = _role(context, node)
    capture_fill = _capture_fill(context, node, dtype)
    capture_hook = _capture_hook(context, node, runner)
    absent = resolve_absent(node, written)
    when = _when(context, get(node, "when"), runner)
    if isinstance(absent, AbsentKey):
        when = _also_present(when, absent)
    owns = resolve_owners(context, get(node, "stages"))
    mirror = resolve_mirror(context, get(node, "mirror"))
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
        stages=resolve_places(get(node, "stages")),
        residency=Residency(optional_text(node, "residency") or "device"),
        absent=absent,
        mutable=flag(node, "mutable"),
        cast=flag(node, "cast"),
        capture_fill=capture_fill,
        capture_hook=capture_hook,
        owns=owns,
        when=when,
        broadcast=flag(node, "broadcast"),
        mirror=mirror,
        host_only=optional_text(node, "place") == "host",
        doc=optional_text(node, "doc"),
        span=node.span,
        spans=spans_of(node),
    )


def _padding(
    context: Context,
    node: Node,
    dtype: str,
    axes: tuple[str, ...] | None,
    runner: RunnerNames,
) -> Padding | None:
    """One padding, or one for each of two axes; None when left out or after a finding."""
    written = get(node, "padding")
    by_axis = {entry.key: entry.value for entry in entries(written)} if _is_map(written) else {}
    if not by_axis or "fill" in by_axis or "keep" in by_axis:
        return resolve_padding(context, node, dtype, scalars=runner.scalars)
    if axes is None:
        return None
    if set(by_axis) != set(axes):
        message = f"padding names {', '.join(by_axis)}; the slot has axes {', '.join(axes)}"
        help = f"write padding: {{{axes[0]}: …, {axes[1]}: …}}, or one padding for both"
        context.report(rules.PADDING_BY_AXIS, need(node, "padding").span, message, help)
        return None
    scope = context.scope(
        "in a padding", Symbol.LIVE, Symbol.PADDED, Symbol.SCALAR, *BUILD, scalars=runner.scalars
    )
    first, second = (one_axis_padding(context, by_axis[axis], dtype, scope) for axis in axes)
    if first is None or second is None:
        return None
    return PaddingByAxis(first=first, second=second)


def _is_map(node: Node | None) -> bool:
    return node is not None and not isinstance(node, Scalar)


def _when(context: Context, node: Node | None, runner: RunnerNames) -> Expr | None:
    """The condition under which a slot exists; ``scalar.n`` alone means that it is not 0."""
    if node is None:
        return None
    scope = context.scope("in a condition of a slot", Symbol.SCALAR, *BUILD, scalars=runner.scalars)
    if not _is_scalar_alone(node):
        return context.expression(node, scope, ExprType.CONDITION)
    value = context.expression(node, scope)
    return None if value is None else Compare("!=", value, Int(0))


def _is_scalar_alone(node: Node) -> bool:
    prefix, _, name = str(scalar(node)).strip().partition(".")
    return prefix == "scalar" and name.isidentifier()


def _also_present(when: Expr | None, absent: AbsentKey) -> Expr:
    present = Compare("==", Ref(Symbol.SCALAR, absent.scalar), Int(1))
    return present if when is None else Logical("and", when, present)


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


def _capture_fill(context: Context, node: Node, dtype: str) -> Expr | float | None:
    capture = get(node, "capture")
    if capture is None or isinstance(capture, Scalar):
        return None
    return context.value(
        need(capture, "fill"), context.scope("in a capture value", Symbol.PADDED, *BUILD), dtype
    )


def _capture_hook(context: Context, node: Node, runner: RunnerNames) -> str | None:
    """The hook of ``capture: hook.<name>``."""
    capture = get(node, "capture")
    if not isinstance(capture, Scalar):
        return None
    name = text(capture).removeprefix("hook.")
    return name if context.known("hook", name, runner.hooks, capture.span) else None
