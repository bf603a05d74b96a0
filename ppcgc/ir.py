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
class Group:
    """Ranks of a parallel group choose one bucket: by the largest of all their live counts.

    ``path`` is a host list of the batch with one live count a rank of ``over``.
    """

    over: str  # "tp" | "dp"
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A padded axis. ``max`` is its capacity: the most rows that any bucket may have."""

    name: str
    max: int
    live: LiveCount
    zero_key: bool = False  # live 0 selects a graph captured without the axis' slots
    group: Group | None = None
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


OneAxisPadding: TypeAlias = ZeroPadding | FillPadding | RepeatLastPadding | KeepPadding


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddingByAxis:
    """A slot with two axes: cells where the first is not live take its padding, cells where
    the first is live and the second is not take the second's."""

    first: OneAxisPadding
    second: OneAxisPadding


Padding: TypeAlias = OneAxisPadding | PaddingByAxis


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
    padding: OneAxisPadding
    when: Expr | None = None  # over cut.layer, dims, options: the key crosses only such cuts
    content: str = "replicated"  # "replicated" | "sharded" (over tp) | "per_rank"
    wire: str = "whole"  # "whole" | "scatter_gather"
    by_runtime: bool = False  # by: runtime, the key is forwarded as received
    doc: str | None = None
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)

    def span_of(self, word: str) -> Span:
        return self.spans.get(word, self.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindIds:
    """Layers listed by global id."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindWhere:
    """Layers whose entry in a list (or whose character in a string) of the config equals a word."""

    path: tuple[str, ...]
    value: str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KindIf:
    """Layers for which an expression of ``layer`` and dims holds."""

    expr: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    name: str
    rule: KindIds | KindWhere | KindIf
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``layer_count`` is an expression of dims, or a config path when written ``config.x``."""

    layer_count: Expr | ConfigDim
    stages: EvenStages | tuple[StageRange, ...]
    boundary: tuple[BoundaryKey, ...]
    kinds: tuple[LayerKind, ...] = ()
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
class ConstScalar:
    """The batch's value must be this one."""

    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketScalar:
    """The graph sees the smallest of ``sizes`` that is not below the batch's value."""

    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyScalar:
    """One graph for each of ``values``; any other value has no graph."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeScalar:
    """No part of the key: usable in ``compute`` and ``dispatch`` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A host number of the batch. ``source`` is a batch path or an expression of live counts.

    ``presence_of`` names the slot whose presence it is (``absent: key``): 1 there, 0 not.
    """

    name: str
    source: BatchCount | ComputedCount | None
    mode: ConstScalar | BucketScalar | KeyScalar | FreeScalar
    presence_of: str | None = None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A build-time choice: a bool, an int, or one of ``choices``."""

    name: str
    type: str  # "bool" | "int" | "enum"
    default: bool | int | str
    choices: tuple[str, ...] = ()
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """Host code of the caller that the runner calls; given at build, never named in the spec.

    ``at``: "key" once for each graph key before warm-up, "load" after the copies, "plan" before
    every warm-up, capture and replay. ``workspace`` is bytes of device memory that it is given.
    At most ``staging`` plan calls may have unfinished device work.
    """

    name: str
    at: frozenset[str]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    workspace: Expr | None = None
    staging: int = 1
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerWhen:
    """A host condition of the batch that makes a step eager, recorded under ``reason``."""

    reason: str
    kind: str  # "present" | "is_true" | "is_false" | "above" | "hook"
    path: tuple[str, ...] = ()
    above: Expr | None = None
    hook: str | None = None
    span: Span = field(compare=False)


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
    places: frozenset[Place] = frozenset(Place)  # stages: where the runner exists at all
    scalars: tuple[Scalar, ...] = ()
    hooks: tuple[Hook, ...] = ()
    eager_when: tuple[EagerWhen, ...] = ()
    uneven: str = "error"  # "error" | "eager": batches that break an `equals` axis
    axis_max: tuple[tuple[str, int], ...] = ()  # capacities lowered for this runner
    boundary: tuple[BoundaryKey, ...] | None = None  # the pipeline's, some fields overridden
    transport: str = "eager"  # "eager" | "captured" | "symmetric"
    compile: str = "none"  # "none" | "inductor"
    overlaps: tuple[str, ...] = ()  # runners that may run while this one does
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
    options: tuple[Option, ...] = ()
    parallel: frozenset[str] = frozenset()  # of "tp", "dp": sizes and ranks given at build
    source: str = field(compare=False)  # the spec's file name, without folders
    span: Span = field(compare=False)

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    def state(self, name: str) -> State:
        return next(state for state in self.states if state.name == name)
