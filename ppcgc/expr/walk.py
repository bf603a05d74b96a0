"""Walking and rebuilding trees: the one place that knows the children of each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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


def children(expr: Expr) -> tuple[Expr, ...]:
    """The operands of a node, left to right; none for a leaf."""
    match expr:
        case Int() | Bool() | Text() | Name() | Ref():
            return ()
        case Negate(operand) | Not(operand):
            return (operand,)
        case Arithmetic(_, left, right) | Compare(_, left, right) | Logical(_, left, right):
            return (left, right)
        case CeilDiv(left, right):
            return (left, right)
        case Extreme(_, operands):
            return operands
        case In(item, choices):
            return (item, *choices)
        case Below(_, limit):
            return (limit,)
        case IfElse(then, condition, otherwise):
            return (then, condition, otherwise)


def nodes(expr: Expr) -> Iterator[Expr]:
    """The node itself and everything below it, left to right."""
    yield expr
    for child in children(expr):
        yield from nodes(child)


def refs(expr: Expr) -> frozenset[Ref]:
    """Every reference in the tree."""
    return frozenset(node for node in nodes(expr) if isinstance(node, Ref))


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same tree with ``change`` applied to each node, its operands first."""

    def again(part: Expr) -> Expr:
        return rebuild(part, change)

    match expr:
        case Int() | Bool() | Text() | Name() | Ref():
            return change(expr)
        case Negate(operand):
            return change(Negate(again(operand)))
        case Not(operand):
            return change(Not(again(operand)))
        case Arithmetic(op, left, right):
            return change(Arithmetic(op, again(left), again(right)))
        case Compare(op, left, right):
            return change(Compare(op, again(left), again(right)))
        case Logical(op, left, right):
            return change(Logical(op, again(left), again(right)))
        case CeilDiv(left, right):
            return change(CeilDiv(again(left), again(right)))
        case Extreme(op, operands):
            return change(Extreme(op, tuple(again(operand) for operand in operands)))
        case In(item, choices):
            return change(In(again(item), tuple(again(choice) for choice in choices)))
        case Below(kind, limit):
            return change(Below(kind, again(limit)))
        case IfElse(then, condition, otherwise):
            return change(IfElse(again(then), again(condition), again(otherwise)))


def replace_leaves(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same tree with ``change`` applied to each leaf."""
    return rebuild(expr, lambda node: node if children(node) else change(node))


def with_constants(expr: Expr, known: Mapping[Ref, int]) -> Expr:
    """The same tree with the integers of ``known`` in the place of their references."""

    def change(leaf: Expr) -> Expr:
        return Int(known[leaf]) if isinstance(leaf, Ref) and leaf in known else leaf

    return replace_leaves(expr, change)
