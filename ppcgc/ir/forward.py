"""What the forward is given, and what of its result leaves the stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.ir.places import Place
from ppcgc.ir.tensors import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotValue:
    """``slot.x``; None on stages that do not have the slot."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryValue:
    """``boundary`` (key None) or ``boundary.x``."""

    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedValue:
    """``padded.x``: the bucket's rows on an axis, a host integer frozen into its graph."""

    axis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewValue:
    """``view``: a closed object with exactly this stage's slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralValue:
    value: int | float | bool | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarValue:
    """``scalar.x``: the graph's own value of a keyed scalar."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookValue:
    """``hook.x``: the object that the hook's ``key`` returned for this graph."""

    name: str


BoundTo: TypeAlias = (
    SlotValue | BoundaryValue | PaddedValue | ViewValue | LiteralValue | ScalarValue | HookValue
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A keyword of the model's forward and what it is given."""

    keyword: str
    value: BoundTo
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """What the forward gets at each place; unbound keywords are passed as None."""

    only: tuple[Binding, ...]
    first: tuple[Binding, ...]
    middle: tuple[Binding, ...]
    last: tuple[Binding, ...]
    span: Span = field(compare=False)

    def at(self, place: Place) -> tuple[Binding, ...]:
        bindings: tuple[Binding, ...] = getattr(self, place.value)
        return bindings


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepView:
    """The output is a view of the stage's output buffer, valid until the next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepClone:
    """The output is a copy of the live rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRing:
    """The output is a copy of the live rows in the next of ``entries`` fixed buffers."""

    entries: int


Keep: TypeAlias = KeepView | KeepClone | KeepRing


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A tensor of the last stage. ``path`` is empty for ``result``, else a name or an index."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[Extent, ...]
    dtype: str
    path: str | int | None
    keep: Keep = KeepView()
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)

    def span_of(self, word: str) -> Span:
        return self.spans.get(word, self.span)
