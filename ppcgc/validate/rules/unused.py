"""Declarations that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import ConstScalar, Family, PaddedValue, Place, ScalarValue
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.expressions import all_expressions, kinds_in
from ppcgc.validate.rules.facts import axes_in, follows, live_axes, slots, tensors


@checked("PPC302", "unused-declaration", warning=True)
def unused_declaration(family: Family) -> Iterator[Finding]:
    """A declaration is used by nothing: a dim, axis, state, scalar, option, layer kind or group.

    **What.** Every declaration is named somewhere: in a shape, a role, an expression, a bucket.

    **Why it hurts.** The caller must give a size or a tensor that has no effect; more often a
    slot that should use it was forgotten.

    **Bad**

    ```yaml
    dims: {hidden: config.hidden_size, heads: config.num_attention_heads}   # no shape has heads
    ```

    **Good**

    ```yaml
    dims: {hidden: config.hidden_size}
    ```
    """
    for kind, name, span in _unused(family):
        yield Finding(span, f"nothing uses {kind} '{name}'", "remove it, or use it")


def _unused(family: Family) -> Iterator[tuple[str, str, Span]]:
    dims = _used_dims(family)
    axes = _used_axes(family)
    states = _used_states(family)
    yield from (("dim", dim.name, dim.span) for dim in family.dims if dim.name not in dims)
    yield from (("axis", axis.name, axis.span) for axis in family.axes if axis.name not in axes)
    yield from (
        ("state", state.name, state.span) for state in family.states if state.name not in states
    )
    yield from _unused_choices(family)
    yield from _unused_scalars(family)


def _unused_choices(family: Family) -> Iterator[tuple[str, str, Span]]:
    """Options and kinds of layer."""
    named = {
        ref.name
        for expr in all_expressions(family)
        for ref in refs(expr)
        if ref.symbol is Symbol.OPTION
    }
    kinds = {kind for expr in all_expressions(family) for kind in kinds_in(expr)}
    kinds |= {kind for _, slot in slots(family) for kind in slot.owns}
    for option in family.options:
        if option.name not in named:
            yield "option", option.name, option.span
    for kind in family.pipeline.kinds:
        if kind.name not in kinds:
            yield "layer kind", kind.name, kind.span


def _unused_scalars(family: Family) -> Iterator[tuple[str, str, Span]]:
    """Scalars that no runner uses: a const one is a check of its own, a keyed one is not."""
    used = {
        ref.name
        for expr in all_expressions(family)
        for ref in refs(expr)
        if ref.symbol is Symbol.SCALAR
    }
    for runner in family.runners:
        for place in Place:
            bound = (binding.value for binding in runner.forward.at(place))
            used |= {value.name for value in bound if isinstance(value, ScalarValue)}
    declared = {scalar.span: scalar for runner in family.runners for scalar in runner.scalars}
    for span, scalar in declared.items():
        if scalar.name not in used and not isinstance(scalar.mode, ConstScalar):
            yield "scalar", scalar.name, span


def _used_states(family: Family) -> set[str]:
    """States that an index names, and those of as many rows: one index may serve several."""
    named = {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "state"}
    rows = [state.rows for state in family.states if state.name in named]
    return {state.name for state in family.states if state.rows in rows}


def _used_dims(family: Family) -> set[str | None]:
    used: set[str | None] = {
        ref.name
        for expr in all_expressions(family)
        for ref in refs(expr)
        if ref.symbol is Symbol.DIM
    }
    used |= {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "dim"}
    return used


def _used_axes(family: Family) -> set[str | None]:
    used: set[str | None] = {axis for tensor in tensors(family) for axis in tensor.node.axes}
    used |= {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "axis"}
    for expr in all_expressions(family):
        used |= axes_in(expr)
        used |= {ref.name for ref in refs(expr) if ref.symbol is Symbol.AXIS_MAX}
    for runner in family.runners:
        used |= {axis for rule in runner.buckets for axis in follows(rule)}
        used |= {
            binding.value.axis
            for bindings in (runner.forward.only, runner.forward.first, runner.forward.middle)
            for binding in (*bindings, *runner.forward.last)
            if isinstance(binding.value, PaddedValue)
        }
    for axis in family.axes:
        used |= live_axes(family, axis.name)
    return used
