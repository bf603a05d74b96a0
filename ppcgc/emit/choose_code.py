"""Straight-line code of a step's first two questions: how many rows are live, which bucket."""

from __future__ import annotations

from ppcgc.emit.expressions import operand, python
from ppcgc.emit.names import class_name, fixed_numbers
from ppcgc.emit.slot_code import source_expression
from ppcgc.emit.source import Code, call, code, dotted, identifier, literal, tuple_of
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BatchCount,
    ComputedCount,
    EqualsBuckets,
    Family,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    SourceRows,
)
from ppcgc.plan import RunnerPlan
from ppcgc.plan.buckets import follow_order

BODY = 4


def extents_lines(
    family: Family, planned: RunnerPlan, counts: dict[str, tuple[str, ...]]
) -> list[Code]:
    """One assignment an axis, each after the axes it follows; then the extents."""
    waiting = {axis: _live_expression(family, planned, axis, counts) for axis in planned.axes}
    statements: list[Code] = []
    known: set[str] = set()
    while waiting:
        axis = next(a for a, (_, needs) in waiting.items() if needs <= known)
        expression, _ = waiting.pop(axis)
        statements.append(code("{} = {}", identifier(axis), expression))
        known.add(axis)
    return [*statements, code("return {}", _extents(planned))]


def _live_expression(
    family: Family, planned: RunnerPlan, axis: str, counts: dict[str, tuple[str, ...]]
) -> tuple[Code, frozenset[str]]:
    """An axis' live count, and the axes whose counts it needs first."""
    rule = next(rule for rule in planned.runner.buckets if rule.axis == axis)
    if isinstance(rule, EqualsBuckets):
        return _over_locals(family, rule.expr), _needs(rule.expr)
    live = family.axis(axis).live
    match live:
        case BatchCount(path=path):
            source = code("batch.{}", dotted(path))
            return code("rt.live_count({}, {})", source, literal(".".join(path))), frozenset()
        case SourceRows():
            path = counts[axis]
            dim = _rows_dim(planned, axis, path)
            parts = (source_expression(path), literal(dim), literal(".".join(path)))
            return call(Code("rt.source_rows"), parts, BODY), frozenset()
        case ComputedCount(expr=expr):
            return _over_locals(family, expr), _needs(expr)


def _rows_dim(planned: RunnerPlan, axis: str, path: tuple[str, ...]) -> int:
    for slot in planned.runner.slots:
        if getattr(slot.source, "path", None) == path:
            for dim, extent in enumerate(slot.shape):
                if extent.axis == axis:
                    return dim
    return 0


def _needs(expr: Expr) -> frozenset[str]:
    return frozenset(ref.name for ref in refs(expr) if ref.symbol in (Symbol.LIVE, Symbol.PADDED))


def _over_locals(family: Family, expr: Expr) -> Code:
    """An expression over rows, with the local variable of each axis."""
    names: dict[Ref, Code] = {
        ref: identifier(ref.name)
        for ref in refs(expr)
        if ref.symbol in (Symbol.LIVE, Symbol.PADDED)
    }
    return python(expr, {**names, **fixed_numbers(family)})


def _extents(planned: RunnerPlan) -> Code:
    extents = class_name(planned.runner.name, "extents")
    return call(extents, tuple(identifier(axis) for axis in planned.axes), BODY)


def choose_lines(family: Family, planned: RunnerPlan) -> list[Code]:
    """Limits, then the padded rows of each axis, then whether the padding is worth it."""
    statements: list[Code] = []
    for limit in planned.runner.limits:
        names = {ref: code("live.{}", identifier(ref.name)) for ref in refs(limit.expr)}
        names.update(fixed_numbers(family))
        where = literal(f"{family.source}:{limit.span.line}")
        parts = (_label(family, planned), literal(limit.text), where, Code("live"))
        statements.append(code("if not {}:", operand(limit.expr, names)))
        statements.append(
            _indented(code("raise {}", call(Code("rt.broken_limit"), parts, BODY + 4)))
        )
    for rule in _in_follow_order(planned):
        statements += _padded_lines(family, planned, rule)
    statements += _padding_lines(planned)
    chosen = call(Code("return rt.Choice"), (_extents(planned), Code("rt.Reason.FITS")), BODY)
    return [*statements, chosen]


def _label(family: Family, planned: RunnerPlan) -> Code:
    return literal(f"{family.name}.{planned.runner.name}")


def _in_follow_order(
    planned: RunnerPlan,
) -> list[ListedBuckets | MaxBucket | EqualsBuckets | PaddedBuckets]:
    own = [r for r in planned.runner.buckets if isinstance(r, ListedBuckets | MaxBucket)]
    return [*own, *follow_order(planned.runner)]


def _padded_lines(
    family: Family,
    planned: RunnerPlan,
    rule: ListedBuckets | MaxBucket | EqualsBuckets | PaddedBuckets,
) -> list[Code]:
    axis = identifier(rule.axis)
    if isinstance(rule, EqualsBuckets):
        return [code("{} = {}", axis, _over_locals(family, rule.expr))]
    if isinstance(rule, PaddedBuckets):
        padded = code("{} = {}", axis, _over_locals(family, rule.expr))
        return [
            padded,
            *_capacity_lines(family, planned, rule.axis, f"live.{axis} > {axis}", str(axis)),
        ]
    sizes = rule.sizes if isinstance(rule, ListedBuckets) else (family.axis(rule.axis).max,)
    if len(sizes) == 1:
        beyond = f"live.{axis} > {axis}"
        return [
            code("{} = {}", axis, literal(sizes[0])),
            *_capacity_lines(family, planned, rule.axis, beyond, str(axis)),
        ]
    table = tuple_of(tuple(literal(size) for size in sizes))
    found = call(code("{} = rt.smallest", axis), (table, code("live.{}", axis)), BODY)
    return [found, *_capacity_lines(family, planned, rule.axis, f"{axis} is None", str(sizes[-1]))]


def _capacity_lines(
    family: Family, planned: RunnerPlan, axis: str, beyond: str, largest: str
) -> list[Code]:
    """What happens beyond the largest bucket."""
    dispatch = planned.runner.dispatch
    test = Code(f"if {beyond}:")
    if dispatch.over_capacity == "eager":
        answer = call(
            Code("return rt.Choice"),
            (Code("None"), Code("rt.Reason.OVER_CAPACITY"), literal(axis)),
            BODY + 4,
        )
        return [test, _indented(answer)]
    where = literal(f"{family.source}:{dispatch.span.line}")
    parts = (
        _label(family, planned),
        literal(axis),
        code("live.{}", identifier(axis)),
        Code(largest),
        where,
    )
    return [test, _indented(call(Code("raise rt.over_capacity"), parts, BODY + 4))]


def _padding_lines(planned: RunnerPlan) -> list[Code]:
    """Eager where a bucket would compute too many padded rows."""
    dispatch = planned.runner.dispatch
    always = dict(dispatch.always_replay_below)
    statements = []
    for axis, factor in dispatch.max_padding:
        name = identifier(axis)
        test = f"{name} > {literal(factor)} * live.{name}"
        if axis in always:
            test = f"live.{name} >= {always[axis]} and {test}"
        answer = call(
            Code("return rt.Choice"),
            (Code("None"), Code("rt.Reason.MAX_PADDING"), literal(axis)),
            BODY + 4,
        )
        statements += [Code(f"if {test}:"), _indented(answer)]
    return statements


def _indented(statement: Code) -> Code:
    return Code("    " + str(statement))
