"""Runners: what each adds to the family, and its buckets, slots, forward and outputs."""

from __future__ import annotations

from ppcgc.diagnostics.model import Related
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import KeyScalar, Place, Runner
from ppcgc.ir import Scalar as KeyedScalar
from ppcgc.nodes import Entry, Node, Scalar
from ppcgc.plan.naming import MODULE_ENDINGS
from ppcgc.resolve import rules
from ppcgc.resolve.boundary import resolve_overrides
from ppcgc.resolve.buckets import resolve_buckets, resolve_limits
from ppcgc.resolve.context import (
    Context,
    entries,
    get,
    integer,
    items,
    need,
    optional_text,
    spans_of,
    text,
)
from ppcgc.resolve.dispatch import resolve_dispatch
from ppcgc.resolve.eligibility import resolve_eager_when
from ppcgc.resolve.forward import resolve_forward
from ppcgc.resolve.hooks import hook_names, resolve_hooks
from ppcgc.resolve.names import check_distinct_identifiers, check_name
from ppcgc.resolve.outputs import resolve_outputs
from ppcgc.resolve.scalars import inherited, resolve_scalars
from ppcgc.resolve.slots import resolve_slots, slot_names
from ppcgc.resolve.sources import RunnerNames, presence_scalar
from ppcgc.resolve.stages import resolve_places

DEFAULT_MAX_GRAPHS = 64
_ENDINGS = MODULE_ENDINGS | {"later"} | {place.value for place in Place}


def resolve_runners(context: Context, known: dict[Ref, int]) -> tuple[Runner, ...]:
    written = entries(need(context.root, "runners"))
    check_distinct_identifiers(context, "runner", [(e.key, e.key_span) for e in written])
    _check_stage_modules(context, written)
    return tuple(_runner(context, entry, known) for entry in written)


def _check_stage_modules(context: Context, written: tuple[Entry, ...]) -> None:
    """Runner ``a`` has modules such as ``a_first`` and ``a_slots``: no other one is called so."""
    names = {entry.key: entry.key_span for entry in written}
    for entry in written:
        stem, _, ending = entry.key.rpartition("_")
        if ending in _ENDINGS and stem in names:
            message = f"runner '{entry.key}' is called like a module of runner '{stem}'"
            related = (Related(names[stem], "the other runner"),)
            context.report(rules.DUPLICATE_NAME, entry.key_span, message, "rename one", related)


def _runner(context: Context, entry: Entry, known: dict[Ref, int]) -> Runner:
    """One runner. Parts that could not be resolved are left out after their findings."""
    node = entry.value
    check_name(context, "runner", entry.key, entry.key_span)
    slots = need(node, "slots")
    max_graphs = get(node, "max_graphs")
    axis_max = _axis_max(context, get(node, "axes"))
    capacities = known | {Ref(Symbol.AXIS_MAX, axis): rows for axis, rows in axis_max}
    scalars = (*resolve_scalars(context, node), *_presence(context, node))
    names = RunnerNames(
        slots=slot_names(slots),
        scalars=_scalar_names(context, node),
        hooks=hook_names(context, node),
    )
    return Runner(
        name=entry.key,
        buckets=resolve_buckets(context, need(node, "buckets"), capacities, scalars),
        limits=resolve_limits(context, get(node, "limits"), capacities, scalars),
        dispatch=resolve_dispatch(context, get(node, "dispatch"), entry.key_span),
        max_graphs=DEFAULT_MAX_GRAPHS if max_graphs is None else integer(max_graphs),
        slots=resolve_slots(context, slots, names),
        forward=resolve_forward(context, need(node, "forward"), names),
        outputs=resolve_outputs(context, need(node, "outputs")),
        places=resolve_places(get(node, "stages")),
        scalars=scalars,
        hooks=resolve_hooks(context, node, entry.key, names.slots),
        eager_when=resolve_eager_when(context, get(node, "eager_when"), names.scalars, names.hooks),
        uneven=optional_text(node, "uneven"),
        axis_max=axis_max,
        boundary=resolve_overrides(context, get(node, "boundary")),
        transport=optional_text(node, "transport") or "eager",
        compile=optional_text(node, "compile") or "none",
        overlaps=_overlaps(context, get(node, "overlaps")),
        doc=optional_text(node, "doc"),
        span=entry.key_span,
        spans=spans_of(node),
    )


def _axis_max(context: Context, node: Node | None) -> tuple[tuple[str, int], ...]:
    return tuple(
        (entry.key, integer(need(entry.value, "max")))
        for entry in entries(node)
        if context.known("axis", entry.key, context.axes, entry.key_span)
    )


def _overlaps(context: Context, node: Node | None) -> tuple[str, ...]:
    runners = [entry.key for entry in entries(need(context.root, "runners"))]
    return tuple(
        text(item)
        for item in items(node)
        if context.known("runner", text(item), runners, item.span)
    )


# ---------------------------------------------------------------- scalars


def _scalar_names(context: Context, runner: Node) -> frozenset[str]:
    declared = {entry.key for entry in inherited(context, runner, "scalars")}
    return frozenset(declared | {presence_scalar(name) for name, _ in _keyed_slots(runner)})


def _keyed_slots(runner: Node) -> list[tuple[str, Node]]:
    """The slots with ``absent: key``, each with that word."""
    found: list[tuple[str, Node]] = []
    for slot in items(need(runner, "slots")):
        absent = get(slot, "absent")
        if isinstance(absent, Scalar) and absent.value == "key":
            found.append((text(need(slot, "name")), absent))
    return found


def _presence(context: Context, runner: Node) -> tuple[KeyedScalar, ...]:
    """For each slot with ``absent: key`` the key scalar that says whether it is there."""
    declared = {entry.key: entry for entry in inherited(context, runner, "scalars")}
    found = []
    for slot, absent in _keyed_slots(runner):
        name = presence_scalar(slot)
        if name in declared:
            message = f"'absent: key' of slot '{slot}' declares scalar '{name}' itself"
            related = (Related(declared[name].key_span, "the other scalar"),)
            context.report(rules.DUPLICATE_NAME, absent.span, message, "rename one", related)
        found.append(
            KeyedScalar(
                name=name,
                source=None,
                mode=KeyScalar(values=(0, 1)),
                presence_of=slot,
                span=absent.span,
            )
        )
    return tuple(found)
