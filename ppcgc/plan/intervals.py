"""Can a condition hold somewhere in a box of counts? By interval arithmetic, soundly.

``impossible`` answers True only when no point of the box satisfies the condition, so a bucket
that it rules out can never be asked for. A point where the condition has no value (a divisor is
zero there) does not satisfy it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ppcgc.expr.tree import (
    Arithmetic,
    Bool,
    CeilDiv,
    Compare,
    Expr,
    Extreme,
    IfElse,
    In,
    Int,
    Logical,
    Negate,
    Not,
    Ref,
)

Interval: TypeAlias = tuple[int, int]
Box: TypeAlias = Mapping[Ref, Interval]


def impossible(condition: Expr, box: Box) -> bool:
    """True when ``condition`` holds nowhere in ``box``; False when it may hold."""
    return verdict(condition, box) is False


def verdict(condition: Expr, box: Box) -> bool | None:
    """False: it holds nowhere in ``box``. True: it fails nowhere. None: not known.

    Points without a value count for neither: they neither hold nor fail.
    """
    match condition:
        case Bool(value):
            return value
        case Not(operand):
            inner = verdict(operand, box)
            return None if inner is None else not inner
        case Logical(op, left, right):
            return _logical(op, verdict(left, box), verdict(right, box))
        case Compare(op, left, right):
            a, b = bounds(left, box), bounds(right, box)
            return None if a is None or b is None else _compare(op, a, b)
        case In(item, choices):
            found = {verdict(Compare("==", item, choice), box) for choice in choices}
            return False if found == {False} else None
        case IfElse(then, test, otherwise):
            chosen = verdict(test, box)
            outcomes = {
                verdict(part, box)
                for part, taken in ((then, True), (otherwise, False))
                if chosen is None or chosen is taken
            }
            return outcomes.pop() if len(outcomes) == 1 else None
        case _:
            return None


def _logical(op: str, left: bool | None, right: bool | None) -> bool | None:
    decides = op == "or"  # what one operand alone settles
    if left is decides or right is decides:
        return decides
    return None if left is None or right is None else not decides


def _compare(op: str, a: Interval, b: Interval) -> bool | None:
    match op:
        case "<":
            return _less(a, b, strictly=True)
        case "<=":
            return _less(a, b, strictly=False)
        case ">":
            return _less(b, a, strictly=True)
        case ">=":
            return _less(b, a, strictly=False)
    if disjoint(a, b):
        return op == "!="
    return op == "==" if a == b and a[0] == a[1] else None


def _less(a: Interval, b: Interval, *, strictly: bool) -> bool | None:
    """``a < b``, or ``a <= b``."""
    slack = 0 if strictly else 1
    if a[1] < b[0] + slack:
        return True
    return False if a[0] >= b[1] + slack else None


def bounds(expr: Expr, box: Box) -> Interval | None:
    """An interval that holds every value of ``expr`` in ``box``; None when none is known."""
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
            return _hull([-(-x // y) for x in a for y in b])
        case Extreme(op, operands):
            inner_bounds = [bounds(operand, box) for operand in operands]
            known = [one for one in inner_bounds if one is not None]
            if len(known) < len(inner_bounds):
                return None
            pick = min if op == "min" else max
            return pick(low for low, _ in known), pick(high for _, high in known)
        case IfElse(then, test, otherwise):
            a, b = bounds(then, box), bounds(otherwise, box)
            chosen = verdict(test, box)
            if chosen is not None:
                return a if chosen else b
            return None if a is None or b is None else _hull([*a, *b])
        case _:
            return None


def _arithmetic(op: str, a: Interval, b: Interval) -> Interval | None:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            return _hull([x * y for x in a for y in b])
        case "//" if b[0] > 0:
            return _hull([x // y for x in a for y in b])
        case "%" if b[0] > 0:
            one_period = b[0] == b[1] and a[0] // b[0] == a[1] // b[0]
            return (a[0] % b[0], a[1] % b[0]) if one_period else (0, b[1] - 1)
        case _:
            return None


def _hull(values: list[int]) -> Interval:
    return min(values), max(values)


def halves(interval: Interval) -> tuple[Interval, Interval]:
    """The lower and the upper half of an interval of two values or more."""
    low, high = interval
    middle = (low + high) // 2
    return (low, middle), (middle + 1, high)


def disjoint(a: Interval, b: Interval) -> bool:
    """Have the two no value in common?"""
    return a[1] < b[0] or b[1] < a[0]
