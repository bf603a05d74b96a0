"""Where live counts come from: which are stated by a batch and which follow from others."""

from __future__ import annotations

from collections.abc import Mapping

from ppcgc.expr.tree import Expr, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentError,
    Axis,
    BatchSource,
    BucketRule,
    ComputedCount,
    EqualsBuckets,
    Place,
    Runner,
    Slot,
)


def count_expr(rule: BucketRule, axis: Axis) -> Expr | None:
    """The expression over other axes' live counts that gives this one's; None when stated."""
    if isinstance(rule, EqualsBuckets):
        return rule.expr
    return axis.live.expr if isinstance(axis.live, ComputedCount) else None


def counted_from(rule: BucketRule, axis: Axis) -> frozenset[str]:
    """The axes whose live counts this one's follows from."""
    expr = count_expr(rule, axis)
    return frozenset() if expr is None else axes_named(expr)


def axes_named(expr: Expr) -> frozenset[str]:
    """The axes whose live or padded rows an expression names."""
    return frozenset(ref.name for ref in refs(expr) if ref.symbol in (Symbol.LIVE, Symbol.PADDED))


def count_order(runner: Runner, axes: Mapping[str, Axis]) -> tuple[str, ...]:
    """The runner's axes, each after those that its live count follows from."""
    needs = {rule.axis: counted_from(rule, axes[rule.axis]) for rule in runner.buckets}
    return in_order_of_need(needs)


def in_order_of_need(needs: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Names after the names that they need, otherwise as given. Rules refused circles before."""
    ordered: list[str] = []
    waiting = list(needs)
    while waiting:
        ready = next((name for name in waiting if needs[name] <= set(ordered)), None)
        if ready is None:
            raise ValueError(f"{', '.join(waiting)} need each other, or a name that is not there")
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered)


def rows_source(runner: Runner, axis: str) -> tuple[Slot, int] | None:
    """The slot whose rows are the live count of an axis with ``live: rows``, and their dimension.

    It is the first that every stage has, that is never absent, that has exactly one row for
    each live one, and all of its dimensions (``broadcast`` lets a source lack some).
    """
    for slot in runner.slots:
        everywhere = slot.stages == frozenset(Place)
        whole = isinstance(slot.absent, AbsentError) and not slot.broadcast
        if isinstance(slot.source, BatchSource) and whole:
            for dim, extent in enumerate(slot.shape):
                plain = extent.scale == 1 and extent.offset == 0
                if everywhere and extent.axis == axis and plain:
                    return slot, dim
    return None
