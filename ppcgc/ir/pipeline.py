"""Layers, stages, and the boundary between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Bool, Expr
from ppcgc.ir.sizes import ConfigDim
from ppcgc.ir.tensors import Extent, OneAxisPadding


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

    @property
    def never(self) -> bool:
        """Whether the key is switched off (`when: false`): it crosses no cut."""
        return self.when == Bool(False)

    def span_of(self, word: str) -> Span:
        return self.spans.get(word, self.span)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """``layer_count`` is an expression of dims, or a config path when written ``config.x``."""

    layer_count: Expr | ConfigDim
    stages: EvenStages | tuple[StageRange, ...]
    boundary: tuple[BoundaryKey, ...]
    kinds: tuple[LayerKind, ...] = ()
    span: Span = field(compare=False)
