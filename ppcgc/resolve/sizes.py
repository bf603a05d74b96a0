"""Dims, axes and states."""

from __future__ import annotations

import re

from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    Axis,
    BatchCount,
    BuildDim,
    ComputedCount,
    ConfigDim,
    ConfigLength,
    Dim,
    DimSource,
    ExprDim,
    Group,
    LiveCount,
    SourceRows,
    State,
)
from ppcgc.nodes import Entry, Node
from ppcgc.resolve import rules
from ppcgc.resolve.context import BUILD, Context, entries, get, integer, items, need, scalar, text
from ppcgc.resolve.names import check_name

_PATH = re.compile(r"(config|batch)((?:\.[A-Za-z_][A-Za-z0-9_]*)+)", re.ASCII)
_LENGTH = re.compile(r"len\( *(config(?:\.[A-Za-z_][A-Za-z0-9_]*)+) *\)", re.ASCII)


def dotted_path(written: object, root: str) -> tuple[str, ...] | None:
    """``config.a.b`` as ``("a", "b")``; None when it is not a path below ``root``."""
    match = _PATH.fullmatch(written) if isinstance(written, str) else None
    if match is None or match[1] != root:
        return None
    return tuple(match[2][1:].split("."))


def checked_path(context: Context, node: Node, root: str) -> tuple[str, ...] | None:
    """As :func:`dotted_path`, with each part checked as a name."""
    path = dotted_path(scalar(node), root)
    if path is not None:
        for part in path:
            check_name(context, f"{root} attribute", part, node.span)
    return path


def config_dim(context: Context, node: Node) -> ConfigDim | None:
    """``config.<path>``, or ``len(config.<path>)``; None for anything else."""
    written = scalar(node)
    counted = _LENGTH.fullmatch(written) if isinstance(written, str) else None
    if counted is None:
        path = checked_path(context, node, "config")
        return None if path is None else ConfigDim(path=path)
    path = tuple(counted[1].split(".")[1:])
    for part in path:
        check_name(context, "config attribute", part, node.span)
    return ConfigLength(path=path)


# ---------------------------------------------------------------- dims


def resolve_dims(context: Context) -> tuple[Dim, ...]:
    found = []
    for entry in entries(get(context.root, "dims")):
        check_name(context, "dim", entry.key, entry.key_span)
        source = _dim_source(context, entry.value)
        if source is not None:
            found.append(Dim(name=entry.key, source=source, span=entry.key_span))
    _check_circles(context, found)
    return tuple(found)


def _dim_source(context: Context, node: Node) -> DimSource | None:
    read = config_dim(context, node)
    if read is not None:
        return read
    if scalar(node) == "build":
        return BuildDim()
    symbols = (Symbol.DIM, Symbol.OPTION, Symbol.PARALLEL)
    scope = context.scope("in a dim", *symbols, alone=("config.*", "build"))
    expr = context.expression(node, scope)
    return None if expr is None else ExprDim(expr=expr)


def _check_circles(context: Context, dims: list[Dim]) -> None:
    uses = {
        dim.name: sorted(ref.name for ref in refs(dim.source.expr) if ref.symbol is Symbol.DIM)
        for dim in dims
        if isinstance(dim.source, ExprDim)
    }
    spans = {dim.name: dim.span for dim in dims}
    for circle in circles(uses):
        first = circle[0]
        shown = " -> ".join([*circle, first])
        context.report(
            rules.CIRCULAR_DIMS,
            spans[first],
            f"dim '{first}' depends on itself: {shown}",
            "give one of them a source of its own: config.<path>, build or an integer",
        )


def circles(uses: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Every circle of a graph once, from its first name in the order of ``uses``."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append(tuple(path[path.index(name) :]))
        elif name not in done:
            for used in uses.get(name, ()):
                visit(used, [*path, name])
            done.add(name)

    for name in uses:
        visit(name, [])
    return found


# ---------------------------------------------------------------- axes


def resolve_axes(context: Context) -> tuple[Axis, ...]:
    found = []
    for entry in entries(get(context.root, "axes")):
        check_name(context, "axis", entry.key, entry.key_span)
        _check_not_a_dim(context, entry)
        live = _live_count(context, need(entry.value, "live"))
        if live is not None:
            found.append(
                Axis(
                    name=entry.key,
                    max=integer(need(entry.value, "max")),
                    live=live,
                    zero_key=get(entry.value, "zero") is not None,
                    group=_group(context, get(entry.value, "group")),
                    span=entry.key_span,
                )
            )
    return tuple(found)


def _check_not_a_dim(context: Context, entry: Entry) -> None:
    if entry.key in context.dims:
        context.report(
            rules.AMBIGUOUS_NAME,
            entry.key_span,
            f"'{entry.key}' is both a dim and an axis",
            "rename one: shapes name both without a prefix",
        )


def _live_count(context: Context, node: Node) -> LiveCount | None:
    if text(node) == "rows":
        return SourceRows()
    path = checked_path(context, node, "batch")
    if path is not None:
        return BatchCount(path=path)
    scope = context.scope("in a live count", Symbol.LIVE, *BUILD, alone=("batch.*", "rows"))
    expr = context.expression(node, scope)
    return None if expr is None else ComputedCount(expr=expr)


def _group(context: Context, node: Node | None) -> Group | None:
    if node is None:
        return None
    path = checked_path(context, need(node, "live"), "batch")
    return None if path is None else Group(over=text(need(node, "over")), path=path)


# ---------------------------------------------------------------- states


def resolve_states(context: Context) -> tuple[State, ...]:
    found = []
    scope = context.scope("in a number of rows", Symbol.DIM, Symbol.OPTION, Symbol.PARALLEL)
    for entry in entries(get(context.root, "state")):
        check_name(context, "state", entry.key, entry.key_span)
        rows = context.expression(need(entry.value, "rows"), scope)
        if rows is not None:
            found.append(
                State(
                    name=entry.key,
                    rows=rows,
                    reserved=tuple(integer(row) for row in items(need(entry.value, "reserved"))),
                    span=entry.key_span,
                )
            )
    return tuple(found)
