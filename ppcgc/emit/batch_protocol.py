"""The structural Protocol of a batch: every attribute path that a kind of stage reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from ppcgc.emit.names import class_name
from ppcgc.emit.source import Code, Identifier, code, identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolProperty:
    name: Identifier
    type: Code
    note: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolClass:
    name: Identifier
    properties: tuple[ProtocolProperty, ...]


@dataclass(slots=True)
class PathTree:
    """Attribute paths as a tree; a leaf has a type and a note, an inner step has children."""

    type: Code | None = None
    note: Code = field(default_factory=lambda: Code(""))
    children: dict[str, PathTree] = field(default_factory=dict)
    optional: bool = False

    def add(self, path: tuple[str, ...], type_: Code, note: Code, *, optional: bool) -> None:
        """Add a leaf; ``optional`` makes it, and the steps before it, possibly None."""
        tree = self
        for step in path:
            tree = tree.children.setdefault(step, PathTree())
            tree.optional = tree.optional or optional
        tree.type, tree.note = type_, note

    def has(self, path: tuple[str, ...]) -> bool:
        """Is there a leaf at a path."""
        tree = self
        for step in path:
            if step not in tree.children:
                return False
            tree = tree.children[step]
        return tree.type is not None

    def classes(self, *name: str) -> list[ProtocolClass]:
        """The Protocol classes, inner ones first."""
        inner = [
            made
            for step, child in self.children.items()
            if child.children
            for made in child.classes(*name, step)
        ]
        properties = tuple(
            ProtocolProperty(
                name=identifier(step), type=child.annotation(*name, step), note=_behind(child.note)
            )
            for step, child in self.children.items()
        )
        return [*inner, ProtocolClass(name=class_name(*name), properties=properties)]

    def annotation(self, *name: str) -> Code:
        """The type of this step as a property."""
        type_ = class_name(*name) if self.children or self.type is None else self.type
        return code("{} | None", type_) if self.optional else type_


def _behind(note: Code) -> Code:
    """A comment behind code; nothing for an inner step, which has none."""
    return code("  {}", note) if str(note) else note
