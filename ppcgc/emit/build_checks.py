"""What a generated constructor checks before anything is built."""

from __future__ import annotations

from ppcgc.emit.source import Code, call, code, literal, tuple_of
from ppcgc.ir import EvenStages, Family


def build_checks(family: Family, hooks_class: Code | None) -> tuple[Code, ...]:
    """Statements: the kinds of what is given, the state's tensors, the range of layers."""
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
    return tuple(checks)


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
