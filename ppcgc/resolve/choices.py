"""What the build chooses: options and the sizes of parallel groups."""

from __future__ import annotations

from ppcgc.ir import Option
from ppcgc.nodes import Entry, Scalar
from ppcgc.resolve.context import Context, entries, get, items, need, scalar, text
from ppcgc.resolve.names import check_name


def resolve_options(context: Context) -> tuple[Option, ...]:
    return tuple(_option(context, entry) for entry in entries(get(context.root, "options")))


def _option(context: Context, entry: Entry) -> Option:
    check_name(context, "option", entry.key, entry.key_span)
    node = entry.value
    if isinstance(node, Scalar):
        default = _default(scalar(node))
        kind = "bool" if isinstance(default, bool) else "int"
        return Option(name=entry.key, type=kind, default=default, span=node.span)
    default_node = need(node, "default")
    return Option(
        name=entry.key,
        type=text(need(node, "type")),
        default=_default(scalar(default_node)),
        choices=tuple(text(word) for word in items(get(node, "choices"))),
        span=default_node.span,
    )


def _default(value: object) -> bool | int | str:
    if not isinstance(value, bool | int | str):
        raise TypeError(f"an option cannot be {value!r}")
    return value
