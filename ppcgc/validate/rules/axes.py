"""Axes and what is declared: live counts, declarations that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

from ppcgc.diagnostics.model import Span
from ppcgc.expr.tree import Expr, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import ComputedCount, ConfigDim, ExprDim, Family, PaddedValue, Runner
from ppcgc.plan.counts import counted_from
from ppcgc.resolve.sizes import circles
from ppcgc.validate.rules.checks import Finding, checked
from ppcgc.validate.rules.facts import (
    axes_in,
    expressions,
    follows,
    live_axes,
    slots,
    tensors,
)


@checked("PPC301", "circular-live-counts")
def circular_live_counts(family: Family) -> Iterator[Finding]:
    """Live counts are computed from each other in a circle.

    **What.** An axis may count by an expression over other axes, never over itself; `equals`
    of a runner counts too.

    **Why it hurts.** None of the counts would ever have a value.

    **Bad**

    ```yaml
    axes:
      tokens: {max: 64, live: live.requests * 4}
      requests: {max: 16, live: live.tokens // 4}
    ```

    **Good**

    ```yaml
    axes:
      tokens: {max: 64, live: live.requests * 4}
      requests: {max: 16, live: batch.num_requests}
    ```
    """
    uses = {axis.name: sorted(live_axes(family, axis.name)) for axis in family.axes}
    for circle in circles(uses):
        shown = " -> ".join([*circle, circle[0]])
        yield Finding(
            family.axis(circle[0]).span,
            f"the live count of '{circle[0]}' depends on itself: {shown}",
            "count one of them by 'live: batch.<path>'",
        )
        return
    for runner in family.runners:
        yield from _circular_counts(family, runner)


def _circular_counts(family: Family, runner: Runner) -> Iterator[Finding]:
    """Circles that ``equals`` of a runner closes."""
    rules = {rule.axis: rule for rule in runner.buckets}
    needs = {axis: sorted(counted_from(rules[axis], family.axis(axis))) for axis in rules}
    follow = {axis: sorted(follows(rules[axis])) for axis in rules}
    for circle in [] if circles(follow) else circles(needs):
        shown = " -> ".join([*circle, circle[0]])
        yield Finding(
            rules[circle[0]].span,
            f"in runner '{runner.name}' the live count of '{circle[0]}' depends on itself: {shown}",
            "give one of them a list or max, and 'live: batch.<path>'",
        )


@checked("PPC302", "unused-declaration", warning=True)
def unused_declaration(family: Family) -> Iterator[Finding]:
    """A dim, axis or state is declared and nothing uses it.

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
    states = {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "state"}
    yield from (("dim", dim.name, dim.span) for dim in family.dims if dim.name not in dims)
    yield from (("axis", axis.name, axis.span) for axis in family.axes if axis.name not in axes)
    yield from (
        ("state", state.name, state.span) for state in family.states if state.name not in states
    )


def _used_dims(family: Family) -> set[str | None]:
    used: set[str | None] = {
        ref.name for expr in _expressions(family) for ref in refs(expr) if ref.symbol is Symbol.DIM
    }
    used |= {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "dim"}
    return used


def _used_axes(family: Family) -> set[str | None]:
    used: set[str | None] = {axis for tensor in tensors(family) for axis in tensor.node.axes}
    used |= {slot.role.of for _, slot in slots(family) if slot.role.of_kind == "axis"}
    for expr in _expressions(family):
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


def _expressions(family: Family) -> Iterator[Expr]:
    yield from (dim.source.expr for dim in family.dims if isinstance(dim.source, ExprDim))
    yield from (state.rows for state in family.states)
    if not isinstance(family.pipeline.layer_count, ConfigDim):
        yield family.pipeline.layer_count
    for tensor in tensors(family):
        yield from (extent.expr for extent in tensor.node.shape)
    for _, slot in slots(family):
        yield from (expr for expr, _ in expressions(slot))
    for axis in family.axes:
        if isinstance(axis.live, ComputedCount):
            yield axis.live.expr
    for runner in family.runners:
        yield from (limit.expr for limit in runner.limits)
