"""Slots: buffers with a fixed address that the captured forward reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr
from ppcgc.ir.places import Place
from ppcgc.ir.tensors import Extent, OneAxisPadding, Padding, PaddingByAxis


class Role(Enum):
    """What the values of a slot mean to the kernels that read them."""

    DATA = "data"
    INDEX = "index"
    WRITE_INDEX = "write_index"
    OFFSETS = "offsets"
    LENGTHS = "lengths"
    MASK = "mask"
    COUNT = "count"


class Residency(Enum):
    """Where a slot's source lies: on the device of the stage or on the host."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSource:
    """Rows come from an attribute path of the caller's batch."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundarySource:
    """Rows come from a key of the boundary."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSource:
    """Every padded row is computed on the host at each step."""

    expr: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstSource:
    """Every row holds a value fixed when the runner is built."""

    value: Expr | float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSource:
    """The caller writes between ``begin(batch)`` and ``finish(step)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """Written inside the captured region only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSource:
    """Written by the hook's ``load``, after the copies."""

    hook: str


Source: TypeAlias = (
    BatchSource
    | BoundarySource
    | ComputeSource
    | ConstSource
    | CallerSource
    | GraphSource
    | HookSource
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentError:
    """None on the source's path is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentFill:
    """None on the source's path sets the live rows to a value."""

    value: int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentEager:
    """None on the source's path makes the step eager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentKey:
    """Presence is part of the graph key, through the key scalar named here."""

    scalar: str


Absent: TypeAlias = AbsentError | AbsentFill | AbsentEager | AbsentKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A host twin of a slot, with a host source of its own; the device is never read back."""

    path: tuple[str, ...]
    optional: bool = False  # absent: none
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleUse:
    """A role and what it speaks of: a dim, an axis, or a state (``of_kind`` says which)."""

    role: Role
    of: str | None = None
    of_kind: str | None = None  # "dim" | "axis" | "state"
    consumer_skips_negative: bool = False
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A buffer with a fixed address that the captured forward reads.

    ``group`` and ``name`` make the attribute path on buffers, views and batch Protocols.
    ``axes`` are the axes that pad it (empty: none); ``shape`` says where they stand.
    """

    name: str
    group: str | None = None
    axes: tuple[str, ...]
    shape: tuple[Extent, ...]
    dtype: str
    padding: Padding | None
    source: Source
    role: RoleUse
    stages: frozenset[Place]
    residency: Residency = Residency.DEVICE
    absent: Absent = AbsentError()
    mutable: bool = False
    cast: bool = False
    capture_fill: Expr | float | None = None
    capture_hook: str | None = None  # capture: hook.<name>, which gives the rows then
    owns: tuple[str, ...] = ()  # layer kinds: a stage that owns one has the slot too
    when: Expr | None = None  # over dims, options, key scalars: the slot exists only then
    broadcast: bool = False  # the source may lack leading dimensions
    mirror: Mirror | None = None
    host_only: bool = False  # place: host, a slot without a device side
    doc: str | None = None
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)  # by word of the slot

    def __post_init__(self) -> None:
        if not self.stages and not self.owns:
            raise ValueError(f"slot {self.name} has no stage")

    @property
    def qualified(self) -> str:
        """``group.name`` or ``name``: as written in the spec."""
        return self.name if self.group is None else f"{self.group}.{self.name}"

    @property
    def paddings(self) -> tuple[OneAxisPadding, ...]:
        """The paddings of the slot, one for each axis where it has two of them."""
        if isinstance(self.padding, PaddingByAxis):
            return self.padding.first, self.padding.second
        return () if self.padding is None else (self.padding,)

    def span_of(self, word: str) -> Span:
        """Where a word of the slot was written; the whole slot when it was left out."""
        return self.spans.get(word, self.span)
