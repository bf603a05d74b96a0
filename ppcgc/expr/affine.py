"""The shape ``a * AXIS + b`` of an extent that carries a padded axis."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.expr.tree import Arithmetic, Expr, Int, Negate, Ref


@dataclass(frozen=True, slots=True)
class Affine:
    """``scale * axis + offset``."""

    scale: int
    offset: int


def affine_expr(affine: Affine, axis: Ref) -> Expr:
    """The one spelling of ``scale * axis + offset``, however it was written."""
    scaled: Expr = axis if affine.scale == 1 else Arithmetic("*", Int(affine.scale), axis)
    return scaled if affine.offset == 0 else Arithmetic("+", scaled, Int(affine.offset))


def affine_in(expr: Expr, axis: Ref) -> Affine | None:
    """``expr`` as ``scale * axis + offset`` with integer constants; None when it has no such form.

    An expression without ``axis`` has scale 0. Any other reference has no constant value.
    """
    match expr:
        case Int(value):
            return Affine(0, value)
        case Ref():
            return Affine(1, 0) if expr == axis else None
        case Negate(operand):
            inner = affine_in(operand, axis)
            return None if inner is None else Affine(-inner.scale, -inner.offset)
        case Arithmetic(op, left, right):
            first, second = affine_in(left, axis), affine_in(right, axis)
            if first is None or second is None:
                return None
            return _combine(op, first, second)
        case _:
            return None


def _combine(op: str, left: Affine, right: Affine) -> Affine | None:
    if op == "+":
        return Affine(left.scale + right.scale, left.offset + right.offset)
    if op == "-":
        return Affine(left.scale - right.scale, left.offset - right.offset)
    if op == "*" and right.scale == 0:
        return Affine(left.scale * right.offset, left.offset * right.offset)
    if op == "*" and left.scale == 0:
        return Affine(right.scale * left.offset, right.offset * left.offset)
    if op in ("//", "%") and left.scale == right.scale == 0 and right.offset != 0:
        divide = left.offset // right.offset if op == "//" else left.offset % right.offset
        return Affine(0, divide)
    return None
