"""The open collections of a composer: what has been read of each list and mapping so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from ppcgc.diagnostics.model import Span
from ppcgc.load.split import Piece
from ppcgc.nodes import Entry, Mapping, Node, Sequence


@dataclass(slots=True)
class PendingKey:
    """A key whose value has not come yet; ``text`` is None when the value is to be dropped."""

    text: str | None
    span: Span


@dataclass(slots=True, kw_only=True)
class Frame:
    """An open collection. ``count_before`` is the number of values read before it opened."""

    is_mapping: bool
    flow: bool
    anchor: str | None
    start: Span
    count_before: int
    height: int = 1
    items: list[Node] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    key_spans: dict[str, Span] = field(default_factory=dict)
    pending: PendingKey | None = None
    pieces: list[Piece] = field(default_factory=list)  # scalars between brackets
    last: Span | None = None  # the last key or value, where a block collection ends

    @property
    def wants_key(self) -> bool:
        return self.is_mapping and self.pending is None

    def add_value(self, node: Node, height: int) -> None:
        """Put a value in its place: an item, or the value of the pending key."""
        self.height = max(self.height, height + 1)
        if not self.is_mapping:
            self.items.append(node)
        elif self.pending is not None:
            if self.pending.text is not None:
                self.entries.append(
                    Entry(key=self.pending.text, value=node, key_span=self.pending.span)
                )
            self.pending = None

    def finish(self, end: Span) -> Node:
        """The node. ``end`` is the place of the closing bracket, used in flow style only."""
        stop = end if self.flow or self.last is None else self.last
        span = Span(
            self.start.file, self.start.line, self.start.column, stop.end_line, stop.end_column
        )
        if self.is_mapping:
            return Mapping(entries=tuple(self.entries), span=span)
        return Sequence(items=tuple(self.items), span=span)
