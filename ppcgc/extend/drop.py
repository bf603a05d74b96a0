"""``drop``: entries that a spec does not inherit.

A list names keys of the map, or names of the entries, that stand at its place; a map leads
there: ``drop: {state: [kv], runners: {decode: {slots: [seq_lens]}}}``. An item of a list may lead
further too: ``drop: {runners: [prefill, {decode: {slots: [seq_lens]}}]}``.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from ppcgc.diagnostics.model import Diagnostic, Related, Span
from ppcgc.extend.merge import entry_name
from ppcgc.extend.rules import BAD_DROP
from ppcgc.nodes import Dropped, Entry, Mapping, Node, Scalar, Sequence


def drop_entries(drop: Node, root: Mapping, parent: str) -> tuple[Mapping, list[Diagnostic]]:
    """The inherited root without what ``drop`` names. ``parent`` is the file's name."""
    dropping = _Dropping(parent)
    kept = dropping.at(drop, root, ())
    if not isinstance(kept, Mapping):
        raise TypeError("a map without some entries is a map")
    return kept, dropping.found


class _Dropping:
    def __init__(self, parent: str) -> None:
        self.found: list[Diagnostic] = []
        self._parent = parent

    def at(self, drop: Node, node: Node, path: tuple[str, ...]) -> Node:
        """What is left of an inherited node."""
        match drop:
            case Sequence(items=items):
                for item in items:
                    leads = isinstance(item, Mapping)
                    node = self.at(item, node, path) if leads else self._without(item, node, path)
                return node
            case Mapping(entries=entries):
                for entry in entries:
                    node = self._below(entry, node, path)
                return node
            case Scalar(span=span):
                help = "write a list of names, or a map that leads to one"
                written = f"`{drop.text}`" if drop.text else "nothing"
                message = f"{written} where a list of names must stand in `drop`"
                self._report(span, message, help)
                return node

    def _without(self, item: Node, node: Node, path: tuple[str, ...]) -> Node:
        if not isinstance(item, Scalar) or not item.text:
            help = "name a key, or the `name` of an entry"
            self._report(item.span, "a list in `drop` holds names", help)
            return node
        name = item.text
        if name not in _names(node):
            self._unknown(name, item.span, node, path)
            return node
        taken = Dropped(name, item.span)
        match node:
            case Mapping(entries=entries, dropped=before):
                kept = tuple(entry for entry in entries if entry.key != name)
                return replace(node, entries=kept, dropped=(*before, taken))
            case Sequence(items=items, dropped=before):
                left = tuple(each for each in items if entry_name(each) != name)
                return replace(node, items=left, dropped=(*before, taken))
            case Scalar():
                return node

    def _below(self, entry: Entry, node: Node, path: tuple[str, ...]) -> Node:
        """Drop inside the values that a key leads to."""
        name, inner = entry.key, (*path, entry.key)
        if name not in _names(node):
            self._unknown(name, entry.key_span, node, path)
            return node
        if isinstance(node, Mapping):
            entries = tuple(
                Entry(
                    key=each.key,
                    value=self.at(entry.value, each.value, inner),
                    key_span=each.key_span,
                )
                if each.key == name
                else each
                for each in node.entries
            )
            return replace(node, entries=entries)
        if isinstance(node, Sequence):
            changed = tuple(
                self.at(entry.value, each, inner) if entry_name(each) == name else each
                for each in node.items
            )
            return replace(node, items=changed)
        return node

    def _unknown(self, name: str, span: Span, node: Node, path: tuple[str, ...]) -> None:
        place = f"`{'.'.join(path)}` of {self._parent}" if path else self._parent
        names = _names(node)
        close = get_close_matches(name, names, 1, 0.6)
        listed = f"it has: {', '.join(names)}" if names else "nothing there has a name"
        related = (Related(node.span, "what is inherited"),) if path else ()
        help = f"did you mean `{close[0]}`?" if close else listed
        self._report(span, f"{place} has no `{name}` to drop", help, related)

    def _report(
        self, span: Span, message: str, help: str, related: tuple[Related, ...] = ()
    ) -> None:
        self.found.append(Diagnostic(BAD_DROP, span, message, help, related))


def _names(node: Node) -> list[str]:
    match node:
        case Mapping():
            return list(node.keys())
        case Sequence(items=items):
            return [name for name in map(entry_name, items) if name is not None]
        case Scalar():
            return []
