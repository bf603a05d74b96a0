"""Expressions of a spec as Python, printed from ppcgc's own tree."""

from __future__ import annotations

from collections.abc import Callable

from ppcgc.emit.source import Code, literal
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

_CONDITIONAL, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _LEAF = range(9)
_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_DIVISIONS = {"//": "rt.floor_div", "%": "rt.remainder"}

Names = Callable[[Ref | Name], Code]


def python(expr: Expr, names: Names) -> Code:
    """Python for ``expr``; ``names`` says what a reference, or a kind of layer, is called."""
    return Code(_print(expr, names)[0])


def operand(expr: Expr, names: Names) -> Code:
    """As ``python``, in brackets unless it binds tighter than any operator."""
    return Code(_at(expr, names, _LEAF))


def _at(expr: Expr, names: Names, least: int) -> str:
    text, binding = _print(expr, names)
    return f"({text})" if binding < least else text


def _list(parts: tuple[Expr, ...], names: Names) -> str:
    return ", ".join(_print(part, names)[0] for part in parts)


def _print(expr: Expr, names: Names) -> tuple[str, int]:
    match expr:
        case Int(value):
            return str(value), _LEAF if value >= 0 else _UNARY
        case Bool(value) | Text(value):
            return str(literal(value)), _LEAF
        case Ref():
            return str(names(expr)), _LEAF
        case Negate(inner):
            return f"-{_at(inner, names, _LEAF)}", _UNARY
        case Not(Not(inner)):
            return _print(inner, names)
        case Not(Compare(op, left, right)):
            return _print(Compare(_OPPOSITES[op], left, right), names)
        case Not(In(item, choices)):
            return _member(item, "not in", choices, names), _COMPARE
        case Not(inner):
            return f"not {_at(inner, names, _NOT)}", _NOT
        case Arithmetic(op, left, right) if op in _DIVISIONS:
            return f"{_DIVISIONS[op]}({_list((left, right), names)})", _LEAF
        case CeilDiv(left, right):
            return f"rt.ceil_div({_list((left, right), names)})", _LEAF
        case Arithmetic(op, left, right):
            level = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_at(left, names, level)} {op} {_at(right, names, level + 1)}", level
        case Extreme(op, operands):
            return f"{op}({_list(operands, names)})", _LEAF
        case Compare(op, left, right):
            return f"{_at(left, names, _SUM)} {op} {_at(right, names, _SUM)}", _COMPARE
        case Below(kind, limit):
            layers = names(Name(("kinds", kind)))
            return f"rt.layers_below({layers}, {_print(limit, names)[0]})", _LEAF
        case In(item, choices):
            return _member(item, "in", choices, names), _COMPARE
        case Logical(op, left, right):
            level = _OR if op == "or" else _AND
            return f"{_at(left, names, level)} {op} {_at(right, names, level + 1)}", level
        case IfElse(then, condition, otherwise):
            parts = (_at(then, names, _OR), _at(condition, names, _OR))
            return f"{parts[0]} if {parts[1]} else {_at(otherwise, names, _CONDITIONAL)}", 0
        case _:
            raise TypeError(f"{type(expr).__name__} has no Python here")


def _member(item: Expr, word: str, choices: tuple[Expr, ...], names: Names) -> str:
    """``x in (1, 2)``, or ``layer in layers_of_kind``."""
    if len(choices) == 1 and isinstance(choices[0], Name):
        return f"{_at(item, names, _SUM)} {word} {names(choices[0])}"
    trailing = "," if len(choices) == 1 else ""
    return f"{_at(item, names, _SUM)} {word} ({_list(choices, names)}{trailing})"
