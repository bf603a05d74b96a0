"""The structural Protocol of a batch: every attribute path that a kind of stage reads."""

from __future__ import annotations

from collections.abc import Iterable
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


_ANYTHING = (Code("object"), Code("rt.HostSource"))  # None is among their values


@dataclass(slots=True)
class PathTree:
    """Attribute paths as a tree; a leaf has a type and a note, an inner step has children."""

    type: Code | None = None
    note: Code = field(default_factory=lambda: Code(""))
    children: dict[str, PathTree] = field(default_factory=dict)
    optional: bool = False
    own_class: Identifier = field(default_factory=lambda: Identifier(""))

    def add(self, path: tuple[str, ...], type_: Code, note: Code, *, optional: bool) -> None:
        """Add a leaf; ``optional`` makes it, and the steps before it, possibly None."""
        tree = self
        for step in path:
            tree = tree.children.setdefault(step, PathTree())
            tree.optional = tree.optional or optional
        tree.type, tree.note = type_, note

    def loosen(self, path: tuple[str, ...]) -> None:
        """Make the steps before the end of a path, where the tree has them, possibly None."""
        tree = self
        for step in path[:-1]:
            if step not in tree.children:
                return
            tree = tree.children[step]
            tree.optional = True

    def has(self, path: tuple[str, ...]) -> bool:
        """Is there a leaf at a path."""
        tree = self
        for step in path:
            if step not in tree.children:
                return False
            tree = tree.children[step]
        return tree.type is not None

    def classes(self, *name: str, beside: Iterable[Identifier] = ()) -> list[ProtocolClass]:
        """The Protocol classes, inner ones first.

        Those whose names would meet are numbered; ``beside`` are other classes of the module.
        """
        self._call({str(other) for other in beside}, *name)
        return self._classes()

    def _call(self, taken: set[str], *name: str) -> None:
        wanted = str(class_name(*name))
        number = 1 + sum(other.rstrip("0123456789") == wanted for other in taken)
        self.own_class = identifier(wanted if number == 1 else f"{wanted}{number}")
        taken.add(str(self.own_class))
        for step, child in self.children.items():
            if child.children:
                child._call(taken, *name, step)

    def _classes(self) -> list[ProtocolClass]:
        inner = [
            made for child in self.children.values() if child.children for made in child._classes()
        ]
        properties = tuple(
            ProtocolProperty(
                name=identifier(step), type=child.annotation(), note=_behind(child.note)
            )
            for step, child in self.children.items()
        )
        return [*inner, ProtocolClass(name=self.own_class, properties=properties)]

    def annotation(self) -> Code:
        """The type of this step as a property."""
        type_ = self.own_class if self.children or self.type is None else self.type
        return code("{} | None", type_) if self.optional and type_ not in _ANYTHING else type_


def _behind(note: Code) -> Code:
    """A comment behind code; nothing for an inner step, which has none."""
    return code("  {}", note) if str(note) else note
