"""What the template of a kind of stage prints: finished names and code, nothing left to decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ppcgc.emit.batch_protocol import PathTree, ProtocolClass
from ppcgc.emit.batch_reads import add_reads, condition_reads, count_reads, presence_reads
from ppcgc.emit.batch_source import is_absent, under
from ppcgc.emit.boundaries import boundary_module, boundary_of
from ppcgc.emit.build_checks import build_checks, stage_ranges
from ppcgc.emit.forward_code import (
    forward_call,
    keyword_names,
    keywords_of,
    model_forward,
)
from ppcgc.emit.hooks_code import HookView, hook_table, hook_views, ineligible_lines, workspaces
from ppcgc.emit.imports import import_lines
from ppcgc.emit.names import class_name
from ppcgc.emit.slot_bind import bind_checks
from ppcgc.emit.slot_code import BODY, SlotCode
from ppcgc.emit.slot_facts import capture_fill
from ppcgc.emit.slot_load import late_statements, load_statements
from ppcgc.emit.slots_view import SlotsClass, bound, placed, slots_classes
from ppcgc.emit.source import (
    Code,
    Identifier,
    call,
    class_header,
    code,
    docstring,
    identifier,
    lines,
    signature,
)
from ppcgc.ir import STAGE_GROUPS, AbsentError, Family, Place
from ppcgc.plan import KindPlan, RunnerPlan

WHAT = {
    Place.ONLY: "The whole model in one stage.",
    Place.FIRST: "The first stage: takes the batch, hands on a boundary.",
    Place.MIDDLE: "A stage between two others: takes a boundary, hands one on.",
    Place.LAST: "The last stage: takes a boundary, gives the outputs.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceView:
    """The runner class of one place."""

    name: Identifier
    doc: Code
    place: Code
    outputs: Identifier
    outputs_type: Identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class KindView:
    """A module: the slots of one kind of stage and the runner classes of its places."""

    module: Identifier
    doc: Code
    imports: tuple[Code, ...]
    later: bool
    batch: Identifier
    protocols: tuple[ProtocolClass, ...]
    slots: Identifier
    slots_classes: tuple[SlotsClass, ...]
    hooks: tuple[HookView, ...]
    hooks_class: Identifier
    hook_table: Code
    build_checks: tuple[Code, ...]
    workspaces: tuple[Code, ...]
    model: Identifier
    model_forward: Code
    keyword_names: Code
    inputs: Identifier
    inputs_header: Code
    facts: Code
    shapes: Code
    initials: Code | None
    there: Code | None
    placed: Code
    host_unpack: Code
    load: Code | None
    late: Code | None
    binds_rows: bool
    bind: tuple[Code, ...]
    bound: Code
    bind_checks: Code | None
    capture_fills: Code | None
    absent: tuple[tuple[Code, Code], ...]
    ineligible: Code | None
    base: Identifier
    base_header: Code
    forward: Code
    signatures: dict[str, Code]
    places: tuple[PlaceView, ...]


def kind_view(family: Family, planned: RunnerPlan, kind: KindPlan) -> KindView:
    runner = planned.runner.name
    name = (runner, kind.name)
    slots = [SlotCode(family, planned.runner, slot, kind.places) for slot in kind.slots]
    in_block = [slot for slot in slots if slot.in_block]
    later = kind.places[0] in STAGE_GROUPS["later"]
    view, extents = class_name(*name, "slots"), class_name(runner, "extents")
    batch, inputs = class_name(*name, "batch"), class_name(*name, "inputs")
    base = identifier(f"_{class_name(*name)}")
    load = [statement for slot in slots for statement in load_statements(slot)]
    late = [statement for slot in slots for statement in late_statements(slot)]
    before, made = bound(slots, *name)
    keywords = keywords_of(
        planned, kind.places[0], slots, view, boundary_of(family, planned.runner)
    )
    own = [each.slot for each in kind.slots]
    conditions = ineligible_lines(family, planned)
    boundary = identifier("Boundary") if later else Code("None")
    typed = (extents, batch, Code("Dims"), view)
    hooks = hook_views(planned, extents, batch, view, *name)
    classes = tuple(slots_classes(slots, *name))
    beside = (*(each.name for each in classes), *(hook.protocol for hook in hooks))
    return KindView(
        module=identifier(f"{runner}_{kind.name}"),
        doc=docstring(_doc(family, planned, kind)),
        imports=_imports(family, planned, kind, extents),
        later=later,
        batch=batch,
        protocols=tuple(_batch_tree(family, planned, slots).classes(*name, "batch", beside=beside)),
        slots=view,
        slots_classes=classes,
        hooks=hooks,
        hooks_class=class_name(*name, "hooks"),
        hook_table=hook_table(planned),
        build_checks=build_checks(
            family, planned.runner, own, class_name(*name, "hooks") if hooks else None
        ),
        workspaces=workspaces(family, planned),
        model=class_name(*name, "model"),
        model_forward=model_forward(keywords),
        keyword_names=keyword_names(keywords),
        inputs=inputs,
        inputs_header=class_header(inputs, (Code("rt.Inputs"), typed)),
        facts=_facts(planned, slots),
        shapes=_mapping(code("{}: {}", slot.key, slot.shape("rows")) for slot in slots),
        initials=_by_slot(slots, SlotCode.initial),
        there=_conditions(slots),
        placed=placed(slots, *name),
        host_unpack=_unpack(["counts", *(str(slot.rows) for slot in in_block)]),
        load=lines(load, BODY) if load else None,
        late=lines(late, BODY) if late else None,
        binds_rows="rows." in f"{before} {made}",
        bind=tuple(before),
        bound=made,
        bind_checks=_bind_checks(slots),
        capture_fills=_by_slot(slots, capture_fill),
        absent=tuple((is_absent(s.path()), s.key) for s in slots if s.wants_eager_when_absent()),
        ineligible=lines(conditions, BODY) if conditions else None,
        base=base,
        base_header=class_header(
            base,
            (class_name(runner, "steps"), ()),
            (
                Code("rt.LaterStage" if later else "rt.EntryStage"),
                (*typed, *((boundary,) if later else ()), Code("OutT")),
            ),
        ),
        forward=forward_call(keywords),
        signatures=_signatures(extents, batch, view, boundary),
        places=tuple(_place_view(runner, place) for place in kind.places),
    )


def _doc(family: Family, planned: RunnerPlan, kind: KindPlan) -> str:
    places = " and ".join(place.value for place in kind.places)
    stages = "stage" if len(kind.places) == 1 else "stages"
    return (
        f"{family.name}.{planned.runner.name}, {places} {stages}: slots, how a batch fills them, "
        "runners."
    )


def _signatures(
    extents: Identifier, batch: Identifier, slots: Identifier, boundary: Code
) -> dict[str, Code]:
    rows, live = code("rows: {}", extents), code("live: {}", extents)
    shapes, numbers = Code("dict[str, tuple[int, ...]]"), Code("dict[str, float]")
    placed = Code("of: Mapping[str, Tensor]")
    given = code("batch: {}", batch)
    carried = code("boundary: {}", boundary)
    view, padded = code("slots: {}", slots), code("padded: {}", extents)
    passed = (view, carried, rows, Code("made: rt.Made"))
    return {
        "pad_late": signature("pad_late", (view, live, padded), Code("None")),
        "shapes": signature("shapes", (rows,), shapes),
        "initials": signature("initials", (), numbers),
        "lacks": signature("lacks", (rows,), Code("frozenset[str]")),
        "slots": signature("slots", (placed,), slots),
        "bind": signature("bind", (given, carried, live), slots),
        "capture_fills": signature("capture_fills", (padded,), numbers),
        "absent": signature("absent", (given,), Code("str | None")),
        "ineligible": signature("ineligible", (given, live), Code("str | None")),
        "forward": signature("forward", passed, Code("object")),
    }


def _imports(
    family: Family, planned: RunnerPlan, kind: KindPlan, extents: Identifier
) -> tuple[Code, ...]:
    """Imports of the family's own modules, in the order a sorter would give them."""
    runner = planned.runner.name
    later = kind.places[0] in STAGE_GROUPS["later"]
    hands_on = any(place not in STAGE_GROUPS["last"] for place in kind.places)
    gives = any(place in STAGE_GROUPS["last"] for place in kind.places)
    boundary = [
        *(["Boundary"] if later or hands_on else []),
        *(["HandedOn"] if hands_on else []),
        *(["Received"] if later else []),
    ]
    results = ["outputs", "results"] if gives else []
    modules = {
        boundary_module(planned.runner): boundary,
        "family": [
            *(["STAGES"] if stage_ranges(family) is not None else []),
            "Dims",
            *(["State"] if family.states else []),
        ],
        runner: [str(extents), *(str(class_name(runner, word)) for word in ("steps", *results))],
        f"{runner}_slots": ["SLOTS"],
    }
    return import_lines(modules)


def _unpack(names: list[str]) -> Code:
    """``counts, input_ids_rows = host.begin()``."""
    return Code(f"({names[0]},)" if len(names) == 1 else ", ".join(names))


def _bind_checks(slots: list[SlotCode]) -> Code | None:
    """Checks of host rows in an eager step; of a slot that may be missing, where it is there."""
    statements: list[Code] = []
    for slot in slots:
        checks = bind_checks(slot)
        if checks and slot.condition("live") is not None:
            statements.append(code("if {} is not None:", slot.on_view()))
            checks = list(map(under, checks))
        statements += checks
    return lines(statements, BODY) if statements else None


def _facts(planned: RunnerPlan, slots: list[SlotCode]) -> Code:
    """``facts = SLOTS``, or the slots of the table that this kind has."""
    if len(slots) == len(planned.runner.slots):
        return Code("facts = SLOTS")
    return call(Code("facts = rt.facts_of"), (Code("SLOTS"), *(slot.key for slot in slots)))


def _mapping(entries: Iterable[Code]) -> Code:
    return Code(f"{{{', '.join(map(str, entries))}}}")


def _by_slot(slots: list[SlotCode], value: Callable[[SlotCode], Code | None]) -> Code | None:
    """``{"slot_mapping": 0}``: the slots that have such a value; None where none has."""
    found = ((slot.key, value(slot)) for slot in slots)
    entries = [code("{}: {}", key, one) for key, one in found if one is not None]
    return _mapping(entries) if entries else None


def _conditions(slots: list[SlotCode]) -> Code | None:
    """``{"topk": rows.tokens > 0}``: when the slots are there that depend on it."""
    return _by_slot(slots, lambda slot: slot.condition("rows"))


def _batch_tree(family: Family, planned: RunnerPlan, slots: list[SlotCode]) -> PathTree:
    tree = PathTree()
    add_reads(tree, [read for read in count_reads(family, planned) if read.type == "int"])
    for slot in sorted(slots, key=lambda slot: not slot.slot.cast):  # the uncast one has the say
        path = slot.batch_path()
        if path is not None:
            type_ = Code("rt.HostSource" if slot.on_host else "Tensor")
            optional = not isinstance(slot.slot.absent, AbsentError)
            tree.add(path, type_, slot.annotation(), optional=optional)
        if slot.slot.mirror is not None:
            note = code("{}, its host twin", slot.annotation())
            tree.add(slot.slot.mirror.path, Code("rt.HostSource"), note, optional=False)
    add_reads(tree, [*count_reads(family, planned), *presence_reads(planned)])
    add_reads(tree, condition_reads(planned))
    return tree


def _place_view(runner: str, place: Place) -> PlaceView:
    gives_outputs = place in STAGE_GROUPS["last"]
    return PlaceView(
        name=class_name(runner, place.value),
        doc=docstring(WHAT[place]),
        place=Code(f"rt.Place.{place.name}"),
        outputs=class_name(runner, "results") if gives_outputs else identifier("HandedOn"),
        outputs_type=class_name(runner, "outputs") if gives_outputs else identifier("Boundary"),
    )
