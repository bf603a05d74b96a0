"""Sizes, live counts, scalars and state: what shapes and buckets are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDim:
    """A size read from the model's config when a runner is built."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLength(ConfigDim):
    """A size that is the number of entries of a list of the config: ``len(config.layer_types)``."""


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
class Option:
    """A build-time choice: a bool, an int, or one of ``choices``."""

    name: str
    type: str  # "bool" | "int" | "enum"
    default: bool | int | str
    choices: tuple[str, ...] = ()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Tensors that the graphs write in place (a KV cache), given at build, never moved.

    ``reserved`` rows belong to padding: only they may be written by warm-up and capture.
    """

    name: str
    rows: Expr
    reserved: tuple[int, ...]
    span: Span = field(compare=False)


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
    mode_span: Span | None = field(compare=False, default=None)
