"""Where a slot's rows come from, what None there means, and a host twin's own source."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.expr.tree import Symbol
from ppcgc.ir import (
    Absent,
    AbsentEager,
    AbsentError,
    AbsentFill,
    AbsentKey,
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    GraphSource,
    HookSource,
    Mirror,
    Source,
)
from ppcgc.nodes import Node, Scalar
from ppcgc.resolve.context import BUILD, Context, get, need, optional_text, text
from ppcgc.resolve.sizes import checked_path
from ppcgc.resolve.tensors import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerNames:
    """What the slots and the forward of a runner may name besides the family's own names."""

    slots: tuple[str, ...]
    scalars: frozenset[str]
    hooks: frozenset[str]


def resolve_source(context: Context, node: Node, dtype: str, names: RunnerNames) -> Source | None:
    """The source of a slot; None after a finding."""
    if not isinstance(node, Scalar):
        return _computed_source(context, node, dtype, names)
    word = text(node)
    if word == "caller":
        return CallerSource()
    if word == "graph":
        return GraphSource()
    root, _, name = word.partition(".")
    if root == "hook":
        known = context.known("hook", name, names.hooks, node.span)
        return HookSource(hook=name) if known else None
    path = checked_path(context, node, "batch")
    if path is not None:
        return BatchSource(path=path)
    known = context.known("boundary key", name, context.boundary_keys, node.span)
    return BoundarySource(key=name) if known else None


def _computed_source(context: Context, node: Node, dtype: str, names: RunnerNames) -> Source | None:
    const = get(node, "const")
    if const is not None:
        value = context.value(const, context.scope("in a constant", *BUILD), dtype)
        return None if value is None else ConstSource(value=value)
    symbols = (Symbol.LIVE, Symbol.PADDED, Symbol.ROW, Symbol.SCALAR)
    scope = context.scope("in a compute", *symbols, *BUILD, scalars=names.scalars, ranks=True)
    computed = context.value(need(node, "compute"), scope, dtype)
    return None if computed is None or isinstance(computed, float) else ComputeSource(expr=computed)


def presence_scalar(slot: str) -> str:
    """The name of the key scalar that says whether a slot with ``absent: key`` is there."""
    return f"has_{slot.replace('.', '_')}"


def resolve_absent(node: Node, slot: str) -> Absent:
    written = get(node, "absent")
    if written is None:
        return AbsentError()
    if isinstance(written, Scalar):
        if text(written) == "key":
            return AbsentKey(scalar=presence_scalar(slot))
        return AbsentEager() if text(written) == "eager" else AbsentError()
    return AbsentFill(value=literal(need(written, "fill")))


def resolve_mirror(context: Context, node: Node | None) -> Mirror | None:
    if node is None:
        return None
    path = checked_path(context, need(node, "source"), "batch")
    optional = optional_text(node, "absent") == "none"
    return None if path is None else Mirror(path=path, optional=optional, span=node.span)
