"""Sizes known when code is generated: bucket tables and limits may use no others."""

from __future__ import annotations

from ppcgc.diagnostics.model import Span
from ppcgc.expr.evaluate import EvaluationError, evaluate
from ppcgc.expr.names import span_of_name
from ppcgc.expr.printing import ref_text
from ppcgc.expr.tree import Expr, Int, Ref, Symbol
from ppcgc.expr.walk import refs, replace_leaves
from ppcgc.ir import Axis, Dim, ExprDim
from ppcgc.resolve import rules
from ppcgc.resolve.context import Context


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


_LATE = (Symbol.DIM, Symbol.OPTION, Symbol.PARALLEL)


def _written(ref: Ref) -> tuple[str, str]:
    return ("dim ", ref.name) if ref.symbol is Symbol.DIM else ("", ref_text(ref))


def with_constants(
    context: Context, expr: Expr, known: dict[Ref, int], text: str, span: Span
) -> Expr | None:
    """``expr`` with every constant put in; None after a finding when a dim is not known yet."""
    late = sorted(_written(ref) for ref in refs(expr) if ref.symbol in _LATE and ref not in known)
    for what, name in late:
        context.report(
            rules.UNKNOWN_NAME,
            span_of_name(text, span, tuple(name.split("."))),
            f"{what}'{name}' is not known when code is generated",
            "use an integer, an axis or a dim that is an integer",
        )

    def change(leaf: Expr) -> Expr:
        return Int(known[leaf]) if isinstance(leaf, Ref) and leaf in known else leaf

    return None if late else replace_leaves(expr, change)
