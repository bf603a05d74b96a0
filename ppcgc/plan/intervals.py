"""Can a condition hold somewhere in a box of live counts? By interval arithmetic, soundly.

``impossible`` answers True only when no point of the box satisfies the condition, so a bucket
that it rules out can never be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ppcgc.expr.tree import (
    Arithmetic,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    Int,
    Logical,
    Negate,
    Ref,
)

Interval: TypeAlias = tuple[int, int]
Box: TypeAlias = Mapping[Ref, Interval]


def impossible(condition: Expr, box: Box) -> bool:
    """True when ``condition`` holds nowhere in ``box``; False when it may hold."""
    match condition:
        case Compare(op, left, right):
            a, b = bounds(left, box), bounds(right, box)
            return a is not None and b is not None and _never(op, a, b)
        case Logical("and", left, right):
            return impossible(left, box) or impossible(right, box)
        case Logical("or", left, right):
            return impossible(left, box) and impossible(right, box)
        case _:
            return False


def _never(op: str, a: Interval, b: Interval) -> bool:
    match op:
        case "<":
            return a[0] >= b[1]
        case "<=":
            return a[0] > b[1]
        case ">":
            return a[1] <= b[0]
        case ">=":
            return a[1] < b[0]
        case "==":
            return a[1] < b[0] or b[1] < a[0]
        case _:
            return a == b and a[0] == a[1]


def bounds(expr: Expr, box: Box) -> Interval | None:
    """The least and greatest value of ``expr`` in ``box``, None when they are not known."""
    match expr:
        case Int(value):
            return value, value
        case Ref():
            return box.get(expr)
        case Negate(operand):
            inner = bounds(operand, box)
            return None if inner is None else (-inner[1], -inner[0])
        case Arithmetic(op, left, right):
            a, b = bounds(left, box), bounds(right, box)
            return None if a is None or b is None else _arithmetic(op, a, b)
        case CeilDiv(left, right):
            a, b = bounds(left, box), bounds(right, box)
            if a is None or b is None or b[0] <= 0:
                return None
            corners = [-(-x // y) for x in a for y in b]
            return min(corners), max(corners)
        case Extreme(op, operands):
            inner_bounds = [bounds(operand, box) for operand in operands]
            known = [one for one in inner_bounds if one is not None]
            if len(known) < len(inner_bounds):
                return None
            pick = min if op == "min" else max
            return pick(low for low, _ in known), pick(high for _, high in known)
        case IfElse(then, _, otherwise):
            a, b = bounds(then, box), bounds(otherwise, box)
            return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
        case _:
            return None


def _arithmetic(op: str, a: Interval, b: Interval) -> Interval | None:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "//" if b[0] > 0:
            corners = [x // y for x in a for y in b]
            return min(corners), max(corners)
        case "%" if b[0] > 0:
            return 0, b[1] - 1
        case _:
            return None
