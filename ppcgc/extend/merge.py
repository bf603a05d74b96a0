"""Lays the nodes of one spec over those of the spec that it extends.

Note [what merges and what replaces]
    Maps merge key by key, lists of named entries name by name and field by field, both in the
    inherited order with new entries at the end. Everything else is replaced: single values,
    other lists, and the values of :data:`WHOLE`. Those have several forms (``padding: zero`` or
    ``{fill: 1}``); merged key by key, two forms would make a third that nobody wrote.
"""

from __future__ import annotations

from ppcgc.diagnostics.model import Diagnostic, Related, Span
from ppcgc.extend.rules import MERGE_CONFLICT
from ppcgc.nodes import Entry, Mapping, Node, Scalar, Sequence

_SLOT = ("runners", "*", "slots", "*")
WHOLE: tuple[tuple[str, ...], ...] = (
    ("options", "*"),
    ("scalars", "*"),
    ("pipeline", "layers", "kinds", "*"),
    ("pipeline", "boundary", "*", "padding"),
    ("runners", "*", "boundary", "*", "padding"),
    ("runners", "*", "buckets", "*"),
    ("runners", "*", "scalars", "*"),
    ("runners", "*", "eager_when", "*"),
    ("runners", "*", "forward", "*", "*"),
    *((*_SLOT, word) for word in ("padding", "source", "absent", "capture")),
)
"""Places whose values are replaced whole; ``*`` stands for any key or name."""

_KINDS = {Scalar: "a single value", Sequence: "a list", Mapping: "a map"}

Path = tuple[str, ...]


def merge(own: Mapping, inherited: Mapping) -> tuple[Mapping, list[Diagnostic]]:
    """One root over another, and where the two are of different build."""
    merging = _Merging()
    return merging.maps(own, inherited, ()), merging.found


def entry_name(node: Node) -> str | None:
    """The ``name`` of a named entry, None for anything else."""
    name = node.get("name") if isinstance(node, Mapping) else None
    return name.value if isinstance(name, Scalar) and isinstance(name.value, str) else None


class _Merging:
    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def maps(self, own: Mapping, inherited: Mapping, path: Path) -> Mapping:
        """The inherited entries in their order, then the new ones."""
        written = {entry.key: entry for entry in own.entries}
        known = set(inherited.keys())
        entries = [
            self._entry(written[old.key], old, path) if old.key in written else old
            for old in inherited.entries
        ]
        entries += [entry for entry in own.entries if entry.key not in known]
        return Mapping(entries=tuple(entries), span=own.span, dropped=inherited.dropped)

    def _entry(self, own: Entry, inherited: Entry, path: Path) -> Entry:
        value = self._value(own.value, inherited.value, (*path, own.key))
        return Entry(key=own.key, value=value, key_span=own.key_span)

    def _value(self, own: Node, inherited: Node, path: Path) -> Node:
        if any(_matches(path, pattern) for pattern in WHOLE):
            return own
        match own, inherited:
            case Mapping(), Mapping():
                return self.maps(own, inherited, path)
            case Sequence(), Sequence():
                return self._lists(own, inherited, path)
            case (Mapping(), Sequence()) | (Scalar() | Sequence(), Mapping()):
                what = f"{_KINDS[type(own)]} over {_KINDS[type(inherited)]}"
                self._conflict(path, what, own.span, inherited.span)
        return own

    def _lists(self, own: Sequence, inherited: Sequence, path: Path) -> Sequence:
        if not _all_named(inherited) or not own.items:
            return own
        for item in own.items:
            if entry_name(item) is None:
                what = "an entry without a name over named ones"
                self._conflict(path, what, item.span, inherited.span)
                return own
        waiting: dict[str | None, Mapping] = {}
        new: list[Node] = []
        known = {entry_name(item) for item in inherited.items}
        for item in own.items:
            name = entry_name(item)
            if isinstance(item, Mapping) and name in known and name not in waiting:
                waiting[name] = item
            else:
                new.append(item)  # a name given twice stays so, for the rule that finds it
        old = [self._named(item, waiting, path) for item in inherited.items]
        return Sequence(items=(*old, *new), span=own.span, dropped=inherited.dropped)

    def _named(self, inherited: Node, waiting: dict[str | None, Mapping], path: Path) -> Node:
        name = entry_name(inherited)
        own = waiting.pop(name, None)
        if own is None or not isinstance(inherited, Mapping):
            return inherited
        return self.maps(own, inherited, (*path, name or ""))

    def _conflict(self, path: Path, what: str, own: Span, inherited: Span) -> None:
        self.found.append(
            Diagnostic(
                MERGE_CONFLICT,
                own,
                f"`{'.'.join(path)}`: {what}",
                "write it as the extended spec does, or name it in `drop` to start anew",
                (Related(inherited, "what is inherited"),),
            )
        )


def _all_named(node: Sequence) -> bool:
    return bool(node.items) and all(entry_name(item) is not None for item in node.items)


def _matches(path: Path, pattern: Path) -> bool:
    return len(path) == len(pattern) and all(
        wanted in ("*", part) for part, wanted in zip(path, pattern, strict=True)
    )
