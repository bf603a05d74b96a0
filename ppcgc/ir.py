"""The typed form of a spec: what every pass after ``resolve`` works on.

Nodes are frozen. Invariants that a single node can hold are checked when it is made, and a
breach is a bug of the compiler (``ValueError``), never a user's mistake: those are found by
``validate.schema``, ``resolve`` and the rules before a node is made. Each node carries the
span it came from, outside equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr


class Place(Enum):
    """Where a stage stands in its pipeline; known when code is generated."""

    ONLY = "only"
    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"


STAGE_GROUPS: dict[str, frozenset[Place]] = {
    "first": frozenset({Place.ONLY, Place.FIRST}),
    "later": frozenset({Place.MIDDLE, Place.LAST}),
    "last": frozenset({Place.ONLY, Place.LAST}),
    "all": frozenset(Place),
}

# bytes of one element; "model" is chosen when a runner is built
DTYPES: dict[str, int | None] = {
    "model": None,
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
INTEGER_DTYPES = frozenset({"uint8", "int8", "int16", "int32", "int64"})


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


# ---------------------------------------------------------------- dims, axes, state


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDim:
    """A size read from the model's config when a runner is built."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDim:
    """A size that the caller gives when a runner is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprDim:
    """A size computed from other dims."""

    expr: Expr


DimSource: TypeAlias = ConfigDim | BuildDim | ExprDim


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    name: str
    source: DimSource
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCount:
    """A live count read from a host integer of the batch: ``batch.num_tokens``."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedCount:
    """A live count computed from other live counts."""

    expr: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """``live: rows``: the extent of the axis' own first source."""


LiveCount: TypeAlias = BatchCount | ComputedCount | SourceRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A padded axis. ``max`` is its capacity: the most rows that any bucket may have."""

    name: str
    max: int
    live: LiveCount
    span: Span = field(compare=False)
    max_span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Tensors that the graphs write in place (a KV cache), given at build, never moved.

    ``reserved`` rows belong to padding: only they may be written by warm-up and capture.
    """

    name: str
    rows: Expr
    reserved: tuple[int, ...]
    span: Span = field(compare=False)


# ---------------------------------------------------------------- slots


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPadding:
    """Rows from live to padded hold zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillPadding:
    """Rows from live to padded hold a value, computed for each step where it uses live counts."""

    value: Expr | float


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatLastPadding:
    """Rows from live to padded repeat the last live one (0 when there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPadding:
    """Rows from live to padded hold ``initial``, then whatever an earlier step left there."""

    why: str
    initial: int | float | bool


Padding: TypeAlias = ZeroPadding | FillPadding | RepeatLastPadding | KeepPadding


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


Source: TypeAlias = (
    BatchSource | BoundarySource | ComputeSource | ConstSource | CallerSource | GraphSource
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


Absent: TypeAlias = AbsentError | AbsentFill | AbsentEager


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """One dimension of a shape.

    ``axis`` is the padded axis it carries, with ``scale * AXIS + offset`` rows; ``axis`` is
    None for a fixed extent, given by ``expr`` (dims only).
    """

    expr: Expr
    axis: str | None = None
    scale: int = 1
    offset: int = 0
    span: Span = field(compare=False)

    def __post_init__(self) -> None:
        if self.axis is not None and (self.scale < 1 or self.offset < 0):
            raise ValueError(f"extent {self.scale} * {self.axis} + {self.offset}")


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
    doc: str | None = None
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)  # by word of the slot

    def __post_init__(self) -> None:
        if not self.stages:
            raise ValueError(f"slot {self.name} has no stage")

    @property
    def qualified(self) -> str:
        """``group.name`` or ``name``: as written in the spec."""
        return self.name if self.group is None else f"{self.group}.{self.name}"

    def span_of(self, word: str) -> Span:
        """Where a word of the slot was written; the whole slot when it was left out."""
        return self.spans.get(word, self.span)


# ---------------------------------------------------------------- pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRange:
    """Half open range of global layer ids."""

    start: int
    end: int
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenStages:
    """As many stages as the build says; the first ones get the remainder."""

    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryKey:
    """One tensor that a stage hands to the next: the words of a slot, without a source."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[Extent, ...]
    dtype: str
    padding: Padding
    doc: str | None = None
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)

    def span_of(self, word: str) -> Span:
        return self.spans.get(word, self.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``layer_count`` is an expression of dims, or a config path when written ``config.x``."""

    layer_count: Expr | ConfigDim
    stages: EvenStages | tuple[StageRange, ...]
    boundary: tuple[BoundaryKey, ...]
    span: Span = field(compare=False)


# ---------------------------------------------------------------- runners


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBuckets:
    """The padded size is the smallest of ``sizes`` that is not below live."""

    axis: str
    sizes: tuple[int, ...]
    span: Span = field(compare=False)
    size_spans: tuple[Span, ...] = field(compare=False, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxBucket:
    """One size: the axis' capacity."""

    axis: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualsBuckets:
    """Live and padded both follow other axes; ``expr`` names them bare (``requests * 2``)."""

    axis: str
    expr: Expr  # over Ref(LIVE, axis): evaluated once with live, once with padded counts
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedBuckets:
    """Padded follows other axes' padded sizes; live stays the axis' own."""

    axis: str
    expr: Expr  # over Ref(PADDED, axis)
    span: Span = field(compare=False)


BucketRule: TypeAlias = ListedBuckets | MaxBucket | EqualsBuckets | PaddedBuckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A condition on live counts, checked at each step. ``text`` is as written."""

    expr: Expr  # over Ref(LIVE, axis)
    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """When a step may replay. Every step's choice is recorded with its reason."""

    max_padding: tuple[tuple[str, float], ...] = ()
    always_replay_below: tuple[tuple[str, int], ...] = ()
    over_capacity: str = "error"  # "error" | "eager"
    require_graph: bool = False
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)  # of the words written

    def span_of(self, word: str) -> Span:
        """Where a word of ``dispatch`` was written; the whole of it when it was left out."""
        return self.spans.get(word, self.span)


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


BoundTo: TypeAlias = SlotValue | BoundaryValue | PaddedValue | ViewValue | LiteralValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A keyword of the model's forward and what it is given."""

    keyword: str
    value: BoundTo
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """For each place what the forward gets; every place passes every keyword, None where unbound."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    name: str
    buckets: tuple[BucketRule, ...]
    limits: tuple[Limit, ...]
    dispatch: Dispatch
    max_graphs: int
    slots: tuple[Slot, ...]
    forward: Forward
    outputs: tuple[Output, ...]
    doc: str | None = None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A whole spec."""

    name: str
    doc: str
    dims: tuple[Dim, ...]
    axes: tuple[Axis, ...]
    states: tuple[State, ...]
    pipeline: Pipeline
    runners: tuple[Runner, ...]
    source: str = field(compare=False)  # the spec's file name, without folders
    span: Span = field(compare=False)

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def state(self, name: str) -> State:
        return next(state for state in self.states if state.name == name)
