"""Hooks: host code of the caller, declared by name."""

from __future__ import annotations

from ppcgc.ir import Hook
from ppcgc.nodes import Entry, Node, Scalar
from ppcgc.resolve import rules
from ppcgc.resolve.context import BUILD, Context, get, integer, items, spans_of, text
from ppcgc.resolve.names import check_distinct_identifiers, check_name
from ppcgc.resolve.scalars import inherited


def hook_names(context: Context, runner: Node) -> frozenset[str]:
    """The names of the hooks that a runner has, sound or not."""
    return frozenset(entry.key for entry in inherited(context, runner, "hooks"))


def resolve_hooks(
    context: Context, runner: Node, name: str, slots: tuple[str, ...]
) -> tuple[Hook, ...]:
    """The hooks of runner ``name``, whose slots are called ``slots``."""
    found = inherited(context, runner, "hooks")
    names = ((entry.key, entry.key_span) for entry in found)
    check_distinct_identifiers(context, "hook", names)
    return tuple(_hook(context, entry, name, slots) for entry in found)


def _hook(context: Context, entry: Entry, runner: str, slots: tuple[str, ...]) -> Hook:
    check_name(context, "hook", entry.key, entry.key_span)
    node = entry.value
    at, workspace, staging = get(node, "at"), get(node, "workspace"), get(node, "staging")
    scope = context.scope("in a workspace, whose bytes never change", *BUILD)
    moments = (at,) if isinstance(at, Scalar) else items(at)
    return Hook(
        name=entry.key,
        at=frozenset(text(moment) for moment in moments),
        reads=_slots(context, get(node, "reads"), runner, slots),
        writes=_slots(context, get(node, "writes"), runner, slots),
        workspace=None if workspace is None else context.expression(workspace, scope),
        staging=1 if staging is None else integer(staging),
        span=entry.key_span,
        spans=spans_of(node),
    )


def _slots(
    context: Context, node: Node | None, runner: str, slots: tuple[str, ...]
) -> tuple[str, ...]:
    for item in items(node):
        if text(item) not in slots:
            message = f"runner '{runner}' has no slot '{text(item)}'"
            help = "declare hooks in the runners that have their slots"
            context.report(rules.UNKNOWN_REFERENCE, item.span, message, help)
    return tuple(text(item) for item in items(node) if text(item) in slots)
