"""The conditions that a batch meets: those of the spec, and those that its slots ask for.

Note [no rows without a request]
    Offsets and lengths deal the rows of one axis out to the entries of another: without an entry
    there is nobody to have a row. The load of such a batch fails by its own check. Where a
    bucket serves live 0 alone (``zero: key``) and that leaves no entry, its capture batch must
    not have rows either; so there, and only there, the condition is a limit like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ppcgc.expr.tree import Compare, Int, Logical, Ref, Symbol
from ppcgc.ir import Axis, Limit, Role, Runner, Slot
from ppcgc.plan.counts import counted_from


def limits_of(runner: Runner, axes: Mapping[str, Axis]) -> tuple[Limit, ...]:
    """The limits of a runner, the spec's own first. See Note [no rows without a request]."""
    emptied = _emptied(runner, axes)
    found = {
        (dealt, to): _someone_has_them(dealt, to, slot)
        for slot, dealt, to in _dealt_out(runner, axes)
        if to in emptied
    }
    return (*runner.limits, *found.values())


def _emptied(runner: Runner, axes: Mapping[str, Axis]) -> frozenset[str]:
    """The axes that a bucket for live 0 of another axis may leave without a live row."""
    rules = {rule.axis: rule for rule in runner.buckets}
    waiting = [name for name in rules if axes[name].zero_key]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        followed = counted_from(rules[name], axes[name]) - found if name in rules else frozenset()
        found |= followed
        waiting += followed
    return frozenset(found)


def _dealt_out(runner: Runner, axes: Mapping[str, Axis]) -> Iterator[tuple[Slot, str, str]]:
    """Slots that deal the rows of an axis out, that axis, and the axis of those who have them.

    Slots of an axis with ``zero: key`` are not there when it has no row.
    """
    for slot in runner.slots:
        deals = slot.role.role in (Role.OFFSETS, Role.LENGTHS) and slot.role.of_kind == "axis"
        if deals and slot.role.of is not None and len(slot.axes) == 1:
            (to,) = slot.axes
            if to != slot.role.of and not axes[to].zero_key:
                yield slot, slot.role.of, to


def _someone_has_them(dealt: str, to: str, slot: Slot) -> Limit:
    none_dealt = Compare("==", Ref(Symbol.LIVE, dealt), Int(0))
    someone = Compare(">", Ref(Symbol.LIVE, to), Int(0))
    return Limit(
        expr=Logical("or", none_dealt, someone),
        text=f"{dealt} == 0 or {to} > 0",
        span=slot.span_of("role"),
    )
