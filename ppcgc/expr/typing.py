"""Integer, condition or word: the type of an expression, found without evaluating it."""

from __future__ import annotations

from enum import Enum

from ppcgc.expr.printing import to_text
from ppcgc.expr.tree import (
    Arithmetic,
    Below,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Name,
    Negate,
    Not,
    Ref,
    Text,
)


class ExprType(Enum):
    INTEGER = "an integer"
    CONDITION = "a condition"
    WORD = "a quoted word"


class _Mismatch(Exception):
    """Raised and caught here: the first operand of the wrong type."""


def type_problem(expr: Expr, wanted: ExprType) -> str | None:
    """Why ``expr`` is not of the wanted type, or None when it is.

    Every reference of the core is an integer. Words are legal beside ``==``, ``!=`` and ``in``.
    """
    try:
        _need(expr, wanted)
    except _Mismatch as mismatch:
        return str(mismatch)
    return None


def _need(expr: Expr, wanted: ExprType) -> None:
    found = _type_of(expr)
    if found is not wanted:
        raise _Mismatch(f"'{to_text(expr)}' is {found.value} where {wanted.value} is needed")


def _type_of(expr: Expr) -> ExprType:
    match expr:
        case Int() | Name() | Ref():
            return ExprType.INTEGER
        case Bool():
            return ExprType.CONDITION
        case Text():
            return ExprType.WORD
        case Negate(operand):
            return _all(ExprType.INTEGER, operand, gives=ExprType.INTEGER)
        case Arithmetic(_, left, right) | CeilDiv(left, right):
            return _all(ExprType.INTEGER, left, right, gives=ExprType.INTEGER)
        case Extreme(_, operands):
            return _all(ExprType.INTEGER, *operands, gives=ExprType.INTEGER)
        case Not(operand):
            return _all(ExprType.CONDITION, operand, gives=ExprType.CONDITION)
        case Logical(_, left, right):
            return _all(ExprType.CONDITION, left, right, gives=ExprType.CONDITION)
        case Compare("==" | "!=", left, right):
            return _all(_type_of(left), right, gives=ExprType.CONDITION)
        case Compare(_, left, right):
            return _all(ExprType.INTEGER, left, right, gives=ExprType.CONDITION)
        case Below(_, limit):
            return _all(ExprType.INTEGER, limit, gives=ExprType.INTEGER)
        case In(item, choices):
            return _all(_type_of(item), *choices, gives=ExprType.CONDITION)
        case IfElse(then, condition, otherwise):
            _need(condition, ExprType.CONDITION)
            return _all(_type_of(then), otherwise, gives=_type_of(then))


def _all(wanted: ExprType, *operands: Expr, gives: ExprType) -> ExprType:
    for operand in operands:
        _need(operand, wanted)
    return gives
