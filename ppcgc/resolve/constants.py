"""Sizes known when code is generated: bucket tables and limits have them as integers."""

from __future__ import annotations

from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.ir import Axis, Dim, ExprDim


def constants(dims: tuple[Dim, ...], axes: tuple[Axis, ...]) -> dict[Ref, int]:
    """The capacities of axes, and the dims that are integers or computed from such."""
    known = {Ref(Symbol.AXIS_MAX, axis.name): axis.max for axis in axes}
    computed = [(dim.name, dim.source.expr) for dim in dims if isinstance(dim.source, ExprDim)]
    for _ in computed:  # each pass knows at least one more level of a chain
        for name, expr in computed:
            value = _value(expr, known)
            if value is not None:
                known[Ref(Symbol.DIM, name)] = value
    return known


def _value(expr: Expr, known: dict[Ref, int]) -> int | None:
    try:
        value = evaluate(expr, known)
    except EvaluationError:
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
