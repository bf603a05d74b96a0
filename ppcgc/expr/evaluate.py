"""The value of an expression, given the values of its references."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ppcgc.expr.printing import ref_text, to_text
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
from ppcgc.expr.walk import children, refs

Value: TypeAlias = int | bool | str

_MOST = 2**63 - 1  # torch counts in int64

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_ORDER: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class EvaluationError(ValueError):
    """An expression has no value: a zero divisor, a negative extent, a missing symbol.

    The message names the expression and the values that led there.
    """


class MissingValueError(EvaluationError):
    """A symbol of the expression has no value in the given environment (not known yet)."""


def evaluate(expr: Expr, env: Mapping[Ref, Value]) -> Value:
    """The value of ``expr``; ``env`` gives its references.

    Raises:
        EvaluationError: a divisor is zero or an operand has the wrong type.
        MissingValueError: a reference is not in ``env``.
    """
    match expr:
        case Int(value) | Bool(value) | Text(value):
            return value
        case Ref():
            if expr not in env:
                raise MissingValueError(f"{ref_text(expr)} has no value here")
            return env[expr]
        case Name(path):
            raise MissingValueError(f"{'.'.join(path)} has no meaning here")
        case Negate(operand):
            return -_integer(operand, env)
        case Not(operand):
            return not _boolean(operand, env)
        case Arithmetic(op, left, right):
            divides = op in ("//", "%")
            divisor = _divisor(expr, right, env) if divides else _integer(right, env)
            return _ARITHMETIC[op](_integer(left, env), divisor)
        case CeilDiv(left, right):
            return -(-_integer(left, env) // _divisor(expr, right, env))
        case Extreme(op, operands):
            values = [_integer(operand, env) for operand in operands]
            return min(values) if op == "min" else max(values)
        case Compare(op, left, right):
            if op in _ORDER:
                return _ORDER[op](_integer(left, env), _integer(right, env))
            same = evaluate(left, env) == evaluate(right, env)
            return same if op == "==" else not same
        case In(item, choices):
            value = evaluate(item, env)
            return value in [evaluate(choice, env) for choice in choices]  # all, as Python does
        case Below(kind, _):
            raise MissingValueError(f"the layers of kind {kind} are not known here")
        case Logical(op, left, right):
            if op == "and":
                return _boolean(left, env) and _boolean(right, env)
            return _boolean(left, env) or _boolean(right, env)
        case IfElse(then, condition, otherwise):
            return evaluate(then if _boolean(condition, env) else otherwise, env)


def evaluate_extent(expr: Expr, env: Mapping[Ref, Value]) -> int:
    """The value of a size: an integer that is not negative, and that torch can count.

    Raises:
        EvaluationError: as :func:`evaluate`, for a value that is no integer, and for one
            that is negative or beyond 64 bits.
    """
    value = _integer(expr, env)
    if value > _MOST:
        raise EvaluationError(f"{to_text(expr)} is {value}{_with(expr, env)}; at most {_MOST} fit")
    if value < 0:
        raise EvaluationError(f"{to_text(expr)} is {value}{_with(expr, env)}; an extent is >= 0")
    return value


def zero_divisor(expr: Expr, known: Mapping[Ref, Value]) -> Expr | None:
    """The first division by something that is zero whatever else is; None where there is none.

    Behind a condition only the text of the divisor counts: the condition may rule the values out.
    """
    match expr:
        case Arithmetic("//" | "%", _, divisor) | CeilDiv(_, divisor):
            try:
                if evaluate(divisor, known) == 0:
                    return expr
            except EvaluationError:
                pass
    guarded = isinstance(expr, IfElse | Logical)
    parts = (zero_divisor(part, {} if guarded else known) for part in children(expr))
    return next((found for found in parts if found is not None), None)


def _integer(expr: Expr, env: Mapping[Ref, Value]) -> int:
    value = evaluate(expr, env)
    if isinstance(value, bool) or not isinstance(value, int):
        raise EvaluationError(f"{to_text(expr)} is {value!r}, not an integer")
    return value


def _boolean(expr: Expr, env: Mapping[Ref, Value]) -> bool:
    value = evaluate(expr, env)
    if not isinstance(value, bool):
        raise EvaluationError(f"{to_text(expr)} is {value!r}, not a condition")
    return value


def _divisor(whole: Expr, divisor: Expr, env: Mapping[Ref, Value]) -> int:
    value = _integer(divisor, env)
    if value == 0:
        raise EvaluationError(f"{to_text(whole)} divides by zero{_with(whole, env)}")
    return value


def _with(expr: Expr, env: Mapping[Ref, Value]) -> str:
    """`` (with live.tokens = 3, dims.block = 0)``: the values behind a failure."""
    known = sorted((ref_text(ref), env[ref]) for ref in refs(expr) if ref in env)
    return f" (with {', '.join(f'{name} = {value}' for name, value in known)})" if known else ""
