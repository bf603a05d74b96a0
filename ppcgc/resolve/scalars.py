"""Scalars: host numbers of the batch, and how each takes part in the graph key."""

from __future__ import annotations

from ppcgc.diagnostics.model import Related
from ppcgc.expr.tree import Symbol
from ppcgc.ir import (
    BatchCount,
    BucketScalar,
    ComputedCount,
    ConstScalar,
    FreeScalar,
    KeyScalar,
    Scalar,
)
from ppcgc.nodes import Entry, Node
from ppcgc.resolve import rules
from ppcgc.resolve.context import BUILD, Context, entries, get, integer, items, need
from ppcgc.resolve.names import check_name
from ppcgc.resolve.sizes import checked_path


def inherited(context: Context, runner: Node, word: str) -> tuple[Entry, ...]:
    """The entries of a word (``scalars``, ``hooks``) of the family, then those of the runner."""
    shared = entries(get(context.root, word))
    own = entries(get(runner, word))
    first = {entry.key: entry for entry in shared}
    for entry in own:
        if entry.key in first:
            message = f"'{entry.key}' of the runner's {word} is declared for every runner already"
            related = (Related(first[entry.key].key_span, "declared for every runner"),)
            context.report(
                rules.DUPLICATE_NAME, entry.key_span, message, "rename or remove one", related
            )
    return (*shared, *(entry for entry in own if entry.key not in first))


def resolve_scalars(context: Context, runner: Node) -> tuple[Scalar, ...]:
    """The scalars of a runner: the family's and its own."""
    found = (_scalar(context, entry) for entry in inherited(context, runner, "scalars"))
    return tuple(scalar for scalar in found if scalar is not None)


def _scalar(context: Context, entry: Entry) -> Scalar | None:
    check_name(context, "scalar", entry.key, entry.key_span)
    if entry.key in context.axes:
        message = f"'{entry.key}' is both a scalar and an axis"
        help = "rename one: both are parts of the graph key"
        context.report(rules.AMBIGUOUS_NAME, entry.key_span, message, help)
    source = _source(context, need(entry.value, "source"))
    if source is None:
        return None
    mode = get(entry.value, "buckets") or get(entry.value, "key") or get(entry.value, "const")
    return Scalar(
        name=entry.key,
        source=source,
        mode=_mode(entry.value),
        span=entry.key_span,
        mode_span=None if mode is None else mode.span,
    )


def _source(context: Context, node: Node) -> BatchCount | ComputedCount | None:
    path = checked_path(context, node, "batch")
    if path is not None:
        return BatchCount(path=path)
    expr = context.expression(node, context.scope("in a scalar", Symbol.LIVE, *BUILD))
    return None if expr is None else ComputedCount(expr=expr)


def _mode(node: Node) -> ConstScalar | BucketScalar | KeyScalar | FreeScalar:
    const, buckets, key = get(node, "const"), get(node, "buckets"), get(node, "key")
    if const is not None:
        return ConstScalar(value=integer(const))
    if buckets is not None:
        return BucketScalar(sizes=tuple(integer(size) for size in items(buckets)))
    if key is not None:
        return KeyScalar(values=tuple(integer(value) for value in items(key)))
    return FreeScalar()
