"""Tree to text of the spec language, with the fewest brackets. ``parse`` reads it back equal."""

from __future__ import annotations

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
    Symbol,
    Text,
)

# how tightly a node binds; a child that binds looser than its place asks for gets brackets
_CONDITIONAL, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _LEAF = range(9)


def to_text(expr: Expr) -> str:
    """The text of a tree."""
    return _at(expr, _CONDITIONAL)


def ref_text(ref: Ref) -> str:
    """A reference written in full: ``live.tokens``, ``tokens.max``, ``dims.hidden``."""
    if ref.symbol is Symbol.AXIS_MAX:
        return f"{ref.name}.max"
    if ref.symbol is Symbol.STATE_ROWS:
        return f"state.{ref.name}.rows"
    if ref.symbol in (Symbol.PARALLEL, Symbol.LAYER):
        return ref.name
    return f"{ref.symbol.value}.{ref.name}"


def _at(expr: Expr, least: int) -> str:
    text, binding = _print(expr)
    return f"({text})" if binding < least else text


def _print(expr: Expr) -> tuple[str, int]:
    match expr:
        case Int(value):
            return str(value), _LEAF if value >= 0 else _UNARY
        case Bool(value):
            return ("true" if value else "false"), _LEAF
        case Text(value):
            return f"'{value}'", _LEAF
        case Name(path):
            return ".".join(path), _LEAF
        case Ref():
            return ref_text(expr), _LEAF
        case Negate(operand):
            # an integer right behind '-' reads as one negative integer
            least = _LEAF + 1 if isinstance(operand, Int) else _UNARY
            return f"-{_at(operand, least)}", _UNARY
        case Not(operand):
            return f"not {_at(operand, _NOT)}", _NOT
        case Arithmetic(op, left, right):
            level = _SUM if op in ("+", "-") else _PRODUCT
            return f"{_at(left, level)} {op} {_at(right, level + 1)}", level
        case CeilDiv(left, right):
            return f"ceil({_at(left, _PRODUCT)} / {_at(right, _UNARY)})", _LEAF
        case Extreme(op, operands):
            return f"{op}({_list(operands)})", _LEAF
        case Compare(op, left, right):
            return f"{_at(left, _SUM)} {op} {_at(right, _SUM)}", _COMPARE
        case In(item, choices):
            return f"{_at(item, _SUM)} in {_choices(choices)}", _COMPARE
        case Below(kind, limit):
            return f"kinds.{kind}.below({to_text(limit)})", _LEAF
        case Logical(op, left, right):
            level = _OR if op == "or" else _AND
            return f"{_at(left, level)} {op} {_at(right, level + 1)}", level
        case IfElse(then, condition, otherwise):
            tail = _at(otherwise, _CONDITIONAL)
            return f"{_at(then, _OR)} if {_at(condition, _OR)} else {tail}", _CONDITIONAL


def _choices(choices: tuple[Expr, ...]) -> str:
    match choices:
        case (Name(("kinds", _)) as kind,):
            return _at(kind, _LEAF)
        case _:
            return f"({_list(choices)})"


def _list(operands: tuple[Expr, ...]) -> str:
    return ", ".join(to_text(operand) for operand in operands)
