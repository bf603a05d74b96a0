"""The node tree of a spec: what was written, and where each key and value stands.

:func:`ppcgc.load.load` makes it; ``validate.schema`` and ``resolve`` read it. Nodes compare by
content: spans lie outside equality. A value reached through an alias is the anchor's own node,
so that its span is the place where the text really is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeAlias

from ppcgc.diagnostics.model import Span

ScalarValue: TypeAlias = str | int | float | bool | None
Plain: TypeAlias = ScalarValue | list["Plain"] | dict[str, "Plain"]
NodePath: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root, as in ``absolute_path`` of a jsonschema error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value. ``text`` is as written, without its quotes."""

    value: ScalarValue
    text: str
    quoted: bool = False
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Dropped:
    """What ``drop`` took out of an inherited node, and where it says so."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    items: tuple[Node, ...]
    span: Span = field(compare=False)
    dropped: tuple[Dropped, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key of a mapping with its value. Keys are text, as written: ``on`` is ``"on"``."""

    key: str
    value: Node
    key_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Entries in the order written; keys are unique."""

    entries: tuple[Entry, ...]
    span: Span = field(compare=False)
    dropped: tuple[Dropped, ...] = field(default=(), compare=False)

    def entry(self, key: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.key == key), None)

    def get(self, key: str) -> Node | None:
        """The value of a key, or None when the key was not written."""
        entry = self.entry(key)
        return None if entry is None else entry.value

    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in self.entries)


Node: TypeAlias = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One spec as read. ``file`` is its name as findings print it, ``text`` its source."""

    file: str
    text: str
    root: Node

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return PurePath(self.file).name

    def at(self, path: NodePath) -> Node | None:
        """The value at a path, or None when nothing was written there."""
        node: Node | None = self.root
        for part in path:
            node = _child(node, part)
        return node

    def span_at(self, path: NodePath) -> Span:
        """Where the value at a path was written; the nearest one around it when it was not."""
        node = self.root
        for part in path:
            child = _child(node, part)
            if child is None:
                break
            node = child
        return node.span

    def key_span_at(self, path: NodePath) -> Span:
        """Where the key that ends a path was written; the value's place for items of a list."""
        if path:
            parent = self.at(path[:-1])
            if isinstance(parent, Mapping) and isinstance(path[-1], str):
                entry = parent.entry(path[-1])
                if entry is not None:
                    return entry.key_span
        return self.span_at(path)


def plain(node: Node) -> Plain:
    """The node as plain Python data: dicts, lists and scalars, for jsonschema."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {entry.key: plain(entry.value) for entry in node.entries}


def children(node: Node) -> Iterator[Node]:
    """The values directly below a node, in the order written."""
    match node:
        case Scalar():
            return
        case Sequence():
            yield from node.items
        case Mapping():
            yield from (entry.value for entry in node.entries)


def _child(node: Node | None, part: str | int) -> Node | None:
    if isinstance(node, Mapping) and isinstance(part, str):
        return node.get(part)
    if isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
        return node.items[part]
    return None
