"""Which stages have a slot or a runner."""

from __future__ import annotations

from ppcgc.ir import STAGE_GROUPS, Place
from ppcgc.nodes import Node, Scalar, Sequence
from ppcgc.resolve.context import Context, items, need, text


def resolve_places(node: Node | None) -> frozenset[Place]:
    """The places that ``stages`` names: all of them when it was left out."""
    if node is None:
        return STAGE_GROUPS["all"]
    words = [text(word) for word in _words(node) if isinstance(word, Scalar)]
    return frozenset[Place]().union(*(STAGE_GROUPS[word] for word in words))


def resolve_owners(context: Context, node: Node | None) -> tuple[str, ...]:
    """The kinds of layer whose owners ``stages`` names by ``{owns: kind}``."""
    if node is None:
        return ()
    owners = [need(word, "owns") for word in _words(node) if not isinstance(word, Scalar)]
    return tuple(
        text(kind)
        for kind in owners
        if context.known("layer kind", text(kind), context.kinds, kind.span)
    )


def _words(node: Node) -> tuple[Node, ...]:
    return items(node) if isinstance(node, Sequence) else (node,)
