"""What slots, boundary keys and outputs share: extents and paddings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr


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
