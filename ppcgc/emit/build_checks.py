"""What a generated constructor checks before anything is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ppcgc.emit.batch_source import under
from ppcgc.emit.names import dtype_code
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import line_of
from ppcgc.emit.source import Code, call, code, literal, tuple_of
from ppcgc.expr.evaluate import evaluate
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    INTEGER_DTYPES,
    ConstSource,
    EvenStages,
    Family,
    FillPadding,
    Role,
    Runner,
    Slot,
)

# what an expression may name to have its value when a runner is built
_SIZES = {Symbol.DIM, Symbol.OPTION, Symbol.AXIS_MAX, Symbol.STATE_ROWS, Symbol.PARALLEL}


def build_checks(
    family: Family, runner: Runner, slots: Sequence[Slot], hooks_class: Code | None
) -> tuple[Code, ...]:
    """Statements: the kinds of what is given, the state, the layers, values that sizes decide."""
    classes = [("dims", Code("Dims"))]
    if family.states:
        classes.append(("state", Code("State")))
    if hooks_class is not None:
        classes.append(("hooks", hooks_class))
    given = [code("{}=({}, {})", Code(name), Code(name), kind) for name, kind in classes]
    plain = (Code("type(self)"), Code("layers"), Code("dtype"), Code("backend"))
    checks = [call(Code("rt.check_given"), (*plain, *given))]
    if family.states:
        checks.append(Code("state.check(dims, backend.device)"))
    if stage_ranges(family) is not None:
        check = "check_declared" if _bound_stages(family) is None else "check_stage"
        checks.append(Code(f"rt.{check}(layers, STAGES)"))
    scope = Scope(family=family, lowered=runner.axis_max, dims="dims")
    return (*checks, *(check for slot in slots for check in _value_checks(slot, scope)))


def _value_checks(slot: Slot, scope: Scope) -> Iterator[Code]:
    """Paddings and constants that only a build can compare with the dtype and the role's size."""
    condition = slot.when
    if condition is not None and not _at_build(condition):
        return
    end = _end(slot, scope)
    for value, word in _values(slot):
        if _decided(value, slot, end) or not _at_build(value):
            continue
        bounds = [] if end is None else [code("below={}", end)]
        if slot.role.consumer_skips_negative:
            bounds.append(Code("skips_negative=True"))
        dtype = dtype_code(slot.dtype, "dtype")
        line = literal(line_of(slot.span_of(word)))
        parts = (literal(slot.qualified), scope.python(value), dtype, line, *bounds)
        check = call(Code("rt.check_value"), parts)
        if condition is None:
            yield check
        else:
            yield code("if {}:", scope.python(condition))
            yield under(check)


def _decided(value: Expr, slot: Slot, end: Code | None) -> bool:
    """Whether the rules have judged it already: a number that any size of at least 1 allows."""
    if refs(value):
        return False
    always = 1 if slot.role.role is Role.LENGTHS else 0
    number = evaluate(value, {})
    return end is None or (isinstance(number, int) and number <= always)


def _values(slot: Slot) -> Iterator[tuple[Expr, str]]:
    """Integers that padded or all rows hold, each with the word of the spec that says so."""
    if slot.dtype not in INTEGER_DTYPES:
        return
    for padding in slot.paddings:
        if isinstance(padding, FillPadding) and not isinstance(padding.value, float):
            yield padding.value, "padding"
    if isinstance(slot.source, ConstSource) and not isinstance(slot.source.value, float):
        yield slot.source.value, "source"


def _end(slot: Slot, scope: Scope) -> Code | None:
    """The least value that a role forbids, where a size of the build says so."""
    of = slot.role.of or ""
    match slot.role.of_kind:
        case "dim":
            size = scope.name(Ref(Symbol.DIM, of))
        case "state":
            size = scope.operand(scope.family.state(of).rows)
        case _:
            return None
    if slot.role.role is Role.LENGTHS:
        return code("{} + 1", size)
    return size if slot.role.role in (Role.INDEX, Role.WRITE_INDEX) else None


def _at_build(value: Expr) -> bool:
    return all(ref.symbol in _SIZES for ref in refs(value))


def stage_ranges(family: Family) -> Code | None:
    """The layers of each stage, half open: ``((0, 2), (2, 4))``. None where the build says."""
    ranges = _bound_stages(family)
    if ranges is None and not isinstance(family.pipeline.stages, EvenStages):
        ranges = tuple((stage.start, stage.end) for stage in family.pipeline.stages)
    if ranges is None:
        return None
    return tuple_of(tuple(tuple_of((literal(start), literal(end))) for start, end in ranges))


def _bound_stages(family: Family) -> tuple[tuple[int, int], ...] | None:
    return None if family.bound is None else family.bound.stages
