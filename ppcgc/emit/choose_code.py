"""Straight-line code of a step's first two questions: how many rows are live, which bucket."""

from __future__ import annotations

from dataclasses import replace

from ppcgc.emit.batch_reads import presence_path, reads_own_count, rows_source
from ppcgc.emit.batch_source import is_absent, source_expression, under
from ppcgc.emit.names import class_name
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import line_of
from ppcgc.emit.source import Code, call, code, identifier, literal, tuple_of
from ppcgc.expr.tree import Expr, Not, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    BatchCount,
    BucketScalar,
    ComputedCount,
    ConstScalar,
    EqualsBuckets,
    Family,
    FreeScalar,
    KeyScalar,
    Limit,
    ListedBuckets,
    MaxBucket,
    PaddedBuckets,
    Scalar,
    SourceRows,
)
from ppcgc.plan import RunnerPlan
from ppcgc.plan.buckets import follow_order, group_column

AnyBuckets = ListedBuckets | MaxBucket | EqualsBuckets | PaddedBuckets


class ChooseCode:
    """The code of ``extents`` and ``choose`` of one runner."""

    def __init__(self, family: Family, planned: RunnerPlan) -> None:
        self.family = family
        self.planned = planned
        self.runner = planned.runner
        self.label = literal(f"{family.name}.{planned.runner.name}")
        here = Scope(family=family, lowered=planned.runner.axis_max, dims="self.dims")
        self.locals = here.at("")
        self.on_live = replace(here, padded="")

    # ------------------------------------------------------------ extents

    def extents_lines(self) -> list[Code]:
        """One assignment a column, each after those that it follows; then the extents."""
        waiting = {axis: self._live_expression(axis) for axis in self.planned.axes}
        early = self._scalars_in(EqualsBuckets)
        statements = [self._scalar_value(scalar) for scalar in early]
        known: set[str] = set()
        while waiting:
            axis = next(a for a, (_, needs) in waiting.items() if needs <= known)
            expression, _ = waiting.pop(axis)
            statements.append(code("{} = {}", identifier(axis), expression))
            known.add(axis)
        later = (scalar for scalar in self.runner.scalars if scalar not in early)
        statements += [self._scalar_value(scalar) for scalar in later]
        statements += [self._group_most(axis) for axis in self._grouped()]
        return [*statements, code("return {}", self._extents())]

    def _scalars_in(self, *kinds: type[EqualsBuckets | PaddedBuckets]) -> list[Scalar]:
        """The scalars that sizes of these kinds are computed from."""
        exprs = [rule.expr for rule in self.runner.buckets if isinstance(rule, kinds)]
        named = {ref.name for expr in exprs for ref in refs(expr) if ref.symbol is Symbol.SCALAR}
        return [scalar for scalar in self.runner.scalars if scalar.name in named]

    def _live_expression(self, axis: str) -> tuple[Code, frozenset[str]]:
        """An axis' live count, and the axes whose counts it needs first."""
        rule = next(rule for rule in self.runner.buckets if rule.axis == axis)
        if isinstance(rule, EqualsBuckets) and not reads_own_count(self.planned, axis):
            return self.locals.python(rule.expr), _needs(rule.expr)
        live = self.family.axis(axis).live
        match live:
            case BatchCount(path=path):
                parts = (source_expression(path), _path(path))
                return call(Code("rt.live_count"), parts), frozenset()
            case SourceRows():
                path, dim = rows_source(self.planned, axis)
                rows = (source_expression(path), literal(dim), _path(path))
                return call(Code("rt.source_rows"), rows), frozenset()
            case ComputedCount(expr=expr):
                return self.locals.python(expr), _needs(expr)

    def _scalar_value(self, scalar: Scalar) -> Code:
        name = identifier(scalar.name)
        if scalar.presence_of is not None:
            absent = is_absent(presence_path(self.planned, scalar))
            return code("{} = 0 if {} else 1", name, absent)
        match scalar.source:
            case BatchCount(path=path):
                parts = (source_expression(path), _path(path))
                return call(code("{} = rt.host_number", name), parts)
            case ComputedCount(expr=expr):
                return code("{} = {}", name, self.locals.python(expr))
            case None:
                raise TypeError(f"scalar {scalar.name} has no source")

    def _grouped(self) -> list[str]:
        return [axis for axis in self.planned.axes if self.family.axis(axis).group is not None]

    def _group_most(self, axis: str) -> Code:
        """The largest live count of the group, by which every rank chooses."""
        group = self.family.axis(axis).group
        if group is None:
            raise TypeError(f"axis {axis} has no group")
        name = identifier(group_column(axis))
        parts = (
            source_expression(group.path),
            _path(group.path),
            code("self.dims.{}", identifier(group.over)),
            identifier(axis),
        )
        return call(code("{} = rt.group_most", name), parts)

    def _extents(self, zeros: frozenset[str] = frozenset()) -> Code:
        """``PrefillExtents(tokens, requests)``, with 0 for columns that are no part of the key."""
        extents = class_name(self.runner.name, "extents")
        columns = tuple(
            Code("0") if column in zeros else identifier(column) for column in self.planned.columns
        )
        return call(extents, columns)

    # ------------------------------------------------------------ choose

    def limits_lines(self) -> list[Code]:
        """What every batch must meet, whichever path its step takes."""
        statements = [line for limit in self.planned.limits for line in self._limit(limit)]
        if self.runner.uneven == "error":
            statements += self._uneven_lines()
        return statements

    def choose_lines(self) -> list[Code]:
        """Limits, the padded rows of each axis and scalar, then whether the padding pays."""
        statements = [Code("self.check_limits(live)")] if self.limits_lines() else []
        if self.runner.uneven == "eager":
            statements += self._uneven_lines()
        early = self._scalars_in(EqualsBuckets, PaddedBuckets)
        for scalar in early:
            statements += self._keyed(scalar)
        own = [r for r in self.runner.buckets if isinstance(r, ListedBuckets | MaxBucket)]
        for rule in [*own, *follow_order(self.runner)]:
            statements += self._padded(rule)
        for scalar in self.runner.scalars:
            statements += [] if scalar in early else self._keyed(scalar)
        statements += self._padding()
        free = {s.name for s in self.runner.scalars if isinstance(s.mode, FreeScalar)}
        zeros = frozenset(free | {group_column(axis) for axis in self._grouped()})
        parts = (self._extents(zeros), Code("rt.Reason.FITS"))
        return [*statements, call(Code("return rt.Choice"), parts)]

    def _limit(self, limit: Limit) -> list[Code]:
        parts = (self.label, literal(limit.text), literal(line_of(limit.span)), Code("live"))
        broken = call(Code("raise rt.broken_limit"), parts)
        broken_if = self.on_live.python(Not(limit.expr))
        return [code("if {}:", broken_if), under(broken)]

    def _uneven_lines(self) -> list[Code]:
        rules = [rule for rule in self.runner.buckets if isinstance(rule, EqualsBuckets)]
        return [line for rule in rules for line in self._uneven(rule)]

    def _uneven(self, rule: EqualsBuckets) -> list[Code]:
        """A batch whose own count is not what the axis must equal."""
        axis = identifier(rule.axis)
        wanted = self.on_live.operand(rule.expr)
        test = code("if live.{} != {}:", axis, wanted)
        if self.runner.uneven == "eager":
            answer = self._eager("UNEVEN", rule.axis)
        else:
            parts = (self.label, literal(rule.axis), code("live.{}", axis), wanted)
            answer = call(Code("raise rt.uneven"), parts)
        return [test, under(answer)]

    def _padded(self, rule: AnyBuckets) -> list[Code]:
        axis, chosen_by = identifier(rule.axis), self._chosen_by(rule.axis)
        if isinstance(rule, EqualsBuckets):
            equal = code("{} = {}", axis, self.locals.python(rule.expr))
            if not self.planned.late:
                return [equal]  # a rule saw to it that more live rows never have a smaller size
            return [equal, *self._capacity(rule.axis, f"{chosen_by} > {axis}", str(axis))]
        if isinstance(rule, PaddedBuckets):
            padded = code("{} = {}", axis, self.locals.python(rule.expr))
            return [padded, *self._capacity(rule.axis, f"{chosen_by} > {axis}", str(axis))]
        sizes = self._sizes(rule)
        if len(sizes) == 1:
            fixed = code("{} = {}", axis, literal(sizes[0]))
            return [fixed, *self._capacity(rule.axis, f"{chosen_by} > {axis}", str(axis))]
        table = tuple_of(tuple(literal(size) for size in sizes))
        found = call(code("{} = rt.smallest", axis), (table, chosen_by))
        return [found, *self._capacity(rule.axis, f"{axis} is None", str(sizes[-1]))]

    def _sizes(self, rule: ListedBuckets | MaxBucket) -> tuple[int, ...]:
        axis = self.family.axis(rule.axis)
        sizes = rule.sizes if isinstance(rule, ListedBuckets) else (self.runner.capacity(axis),)
        return (0, *sizes) if axis.zero_key else sizes

    def _chosen_by(self, axis: str) -> Code:
        """The live count that chooses an axis' bucket: the group's largest where it has one."""
        grouped = self.family.axis(axis).group is not None
        return code("live.{}", identifier(group_column(axis) if grouped else axis))

    def _capacity(self, axis: str, beyond: str, largest: str) -> list[Code]:
        """What happens beyond the largest bucket."""
        dispatch = self.runner.dispatch
        if dispatch.over_capacity == "eager":
            answer = self._eager("OVER_CAPACITY", axis)
        else:
            where = literal(line_of(dispatch.span))
            parts = (self.label, literal(axis), self._chosen_by(axis), Code(largest), where)
            answer = call(Code("raise rt.over_capacity"), parts)
        return [Code(f"if {beyond}:"), under(answer)]

    def _keyed(self, scalar: Scalar) -> list[Code]:
        """A scalar's value in the graph key."""
        name, live = identifier(scalar.name), code("live.{}", identifier(scalar.name))
        match scalar.mode:
            case ConstScalar(value=value):
                parts = (self.label, literal(scalar.name), live, literal(value))
                return [call(code("{} = rt.constant_scalar", name), parts)]
            case BucketScalar(sizes=sizes):
                table = tuple_of(tuple(literal(size) for size in sizes))
                found = call(code("{} = rt.smallest", name), (table, live))
                test = code("if {} is None:", name)
                return [found, test, under(self._no_key(scalar, sizes))]
            case KeyScalar(values=values):
                table = tuple_of(tuple(literal(value) for value in values))
                test = code("if {} not in {}:", name, table)
                known = code("{} = {}", name, live)
                if scalar.presence_of is not None:
                    return [known]
                return [known, test, under(self._no_key(scalar, values))]
            case FreeScalar():
                return []

    def _no_key(self, scalar: Scalar, values: tuple[int, ...]) -> Code:
        if self.runner.dispatch.over_capacity == "eager":
            return self._eager("NO_KEY", scalar.name)
        parts = (
            self.label,
            literal(scalar.name),
            code("live.{}", identifier(scalar.name)),
            tuple_of(tuple(literal(value) for value in values)),
            literal(line_of(scalar.span)),
        )
        return call(Code("raise rt.no_key"), parts)

    def _padding(self) -> list[Code]:
        """Eager where a bucket would compute too many padded rows."""
        dispatch = self.runner.dispatch
        always = dict(dispatch.always_replay_below)
        statements = []
        for axis, factor in dispatch.max_padding:
            live = self._chosen_by(axis)
            test = f"{identifier(axis)} > {literal(factor)} * {live}"
            if axis in always:
                test = f"{live} >= {literal(always[axis])} and {test}"
            statements += [Code(f"if {test}:"), under(self._eager("MAX_PADDING", axis))]
        return statements

    def _eager(self, reason: str, detail: str) -> Code:
        parts = (Code("None"), Code(f"rt.Reason.{reason}"), literal(detail))
        return call(Code("return rt.Choice"), parts)


def _path(path: tuple[str, ...]) -> Code:
    return literal(".".join(path))


def _needs(expr: Expr) -> frozenset[str]:
    return frozenset(ref.name for ref in refs(expr) if ref.symbol in (Symbol.LIVE, Symbol.PADDED))
