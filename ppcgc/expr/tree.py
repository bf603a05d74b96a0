"""The tree of an expression: what a spec author wrote in a shape, a limit or a ``compute``.

Expressions are parsed by ppcgc, never by Python, and printed as Python from this tree alone.
Arithmetic is on integers and follows Python (``//`` rounds down). Booleans come from
comparisons, ``in`` and the logical words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Symbol(Enum):
    """What a name in an expression stands for.

    ``Ref.name`` is the declared name, but for PARALLEL (``tp.size``, ``dp.rank``), CUT (``layer``)
    and LAYER (``layer``).
    """

    DIM = "dims"
    OPTION = "options"
    LIVE = "live"
    PADDED = "padded"
    AXIS_MAX = "max"
    ROW = "row"
    STATE_ROWS = "state"
    PARALLEL = "parallel"
    CUT = "cut"
    LAYER = "layer"
    SCALAR = "scalar"


@dataclass(frozen=True, slots=True)
class Int:
    value: int


@dataclass(frozen=True, slots=True)
class Bool:
    value: bool


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted word, legal only beside ``==``, ``!=`` and ``in`` (enum options)."""

    value: str


@dataclass(frozen=True, slots=True)
class Name:
    """A dotted name as written; :mod:`ppcgc.expr.names` turns it into a :class:`Ref`."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A name whose meaning is known: ``Ref(Symbol.LIVE, "tokens")`` is ``live.tokens``."""

    symbol: Symbol
    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    operand: Expr


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``op`` is one of ``+ - * // %``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class CeilDiv:
    """``ceil(left / right)``, the only place where ``/`` is legal."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Extreme:
    """``min(...)`` or ``max(...)`` of two or more."""

    op: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """``op`` is one of ``== != < <= > >=``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class In:
    """``item in (a, b, c)`` or, for layers, ``item in kinds.k`` (then ``choices`` is one Name)."""

    item: Expr
    choices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """``kinds.k.below(e)``: how many layers of a kind have an id less than ``e``."""

    kind: str
    limit: Expr


@dataclass(frozen=True, slots=True)
class Logical:
    """``op`` is ``and`` or ``or``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class IfElse:
    then: Expr
    condition: Expr
    otherwise: Expr


Expr: TypeAlias = (
    Int
    | Bool
    | Text
    | Name
    | Ref
    | Negate
    | Not
    | Arithmetic
    | CeilDiv
    | Extreme
    | Compare
    | In
    | Below
    | Logical
    | IfElse
)
