"""The bucket table that a build computes: what follows from what, as straight-line code."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.names import class_name
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import line_of
from ppcgc.emit.source import Code, call, code, identifier, lines, literal, tuple_of
from ppcgc.expr.tree import Expr
from ppcgc.ir import Family, FreeScalar
from ppcgc.plan import RunnerPlan
from ppcgc.plan.buckets import follow_order, own_ranges
from ppcgc.plan.counts import count_expr, count_order
from ppcgc.plan.intervals import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LateView:
    """The table, and the bodies of the two methods that it calls."""

    made: Code
    sizes_body: Code
    counts_body: Code


def late_view(family: Family, planned: RunnerPlan) -> LateView | None:
    """None where the table is known when code is generated."""
    if not planned.late:
        return None
    runner = planned.runner
    axes = {axis.name: axis for axis in family.axes}
    rules = {rule.axis: rule for rule in runner.buckets}
    counts = {axis: count_expr(rules[axis], axes[axis]) for axis in count_order(runner, axes)}
    free = {scalar.name for scalar in runner.scalars if isinstance(scalar.mode, FreeScalar)}
    own = {name: spans for name, spans in own_ranges(runner, axes).items() if name not in free}
    sizes = {rule.axis: rule.expr for rule in follow_order(runner)}
    stated = [name for name in own if name not in axes]
    stated += [axis for axis, expr in counts.items() if expr is None]
    where = f"{family.name}.{runner.name} ({line_of(runner.buckets[0].span)})"
    limits = "self.check_limits" if planned.limits or runner.uneven == "error" else "rt.no_limits"
    made = call(
        Code("late = rt.LateBuckets"),
        (
            code("where={}", literal(where)),
            code("kind={}", class_name(runner.name, "extents")),
            Code("columns=self.columns"),
            code("own={}", _mapping({name: _spans(spans) for name, spans in own.items()})),
            code("stated={}", tuple_of(tuple(literal(name) for name in stated))),
            code(
                "following={}",
                _mapping({axis: literal(runner.capacity(axes[axis])) for axis in sizes}),
            ),
            code("most={}", literal(runner.max_graphs)),
            Code("follow_sizes=self.follow_sizes"),
            Code("follow_counts=self.follow_counts"),
            Code(f"check_limits={limits}"),
        ),
    )
    scope = Scope(family=family, lowered=runner.axis_max).at("rows")
    return LateView(
        made=made,
        sizes_body=_follow(scope, sizes),
        counts_body=_follow(scope, {axis: e for axis, e in counts.items() if e is not None}),
    )


def _follow(scope: Scope, exprs: dict[str, Expr]) -> Code:
    """``rows._replace(tokens=...)`` for each column, after those that it follows."""
    if not exprs:
        return Code("return rows")
    *before, last = (
        call(Code("rows._replace"), (code("{}={}", identifier(axis), scope.python(expr)),))
        for axis, expr in exprs.items()
    )
    statements = [*(code("rows = {}", step) for step in before), code("return {}", last)]
    return lines(statements, 8)


def _mapping(entries: dict[str, Code]) -> Code:
    shown = (f"{literal(name)}: {value}" for name, value in entries.items())
    return Code(f"{{{', '.join(shown)}}}")


def _spans(spans: tuple[Interval, ...]) -> Code:
    return tuple_of(tuple(tuple_of((literal(low), literal(high))) for low, high in spans))
