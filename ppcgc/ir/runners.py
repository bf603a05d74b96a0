"""Runners: buckets, limits, dispatch, hooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr
from ppcgc.ir.forward import Forward, Output
from ppcgc.ir.pipeline import BoundaryKey
from ppcgc.ir.places import Place
from ppcgc.ir.sizes import Axis, Scalar
from ppcgc.ir.slots import Slot


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
class Hook:
    """Host code of the caller that the runner calls; given at build, never named in the spec.

    ``at``: "capture" for rows while capturing, "key" once for each graph key before warm-up, "load"
    after the copies, "plan" before every warm-up, capture and replay. ``workspace`` is bytes of
    device memory that it is given. At most ``staging`` plan calls may have unfinished device work.
    """

    name: str
    at: frozenset[str]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    workspace: Expr | None = None
    staging: int = 1
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)  # of the words written

    def span_of(self, word: str) -> Span:
        return self.spans.get(word, self.span)


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
    uneven: str | None = None  # "error" | "eager": batches that break an `equals` axis
    axis_max: tuple[tuple[str, int], ...] = ()  # capacities lowered for this runner
    boundary: tuple[BoundaryKey, ...] | None = None  # the pipeline's, some fields overridden
    transport: str = "eager"  # "eager" | "captured" | "symmetric"
    compile: str = "none"  # "none" | "inductor"
    overlaps: tuple[str, ...] = ()  # runners that may run while this one does
    doc: str | None = None
    span: Span = field(compare=False)
    spans: dict[str, Span] = field(compare=False, default_factory=dict)  # of the words written

    def span_of(self, word: str) -> Span:
        """Where a word of the runner was written; its name when it was left out."""
        return self.spans.get(word, self.span)

    def capacity(self, axis: Axis) -> int:
        """The most rows of an axis here: its own ``max`` where the runner does not lower it."""
        return dict(self.axis_max).get(axis.name, axis.max)
