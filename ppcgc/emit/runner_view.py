"""What the templates of a runner print: finished names and code, nothing left to decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ppcgc.emit.batch_protocol import PathTree, ProtocolClass
from ppcgc.emit.choose_code import choose_lines, extents_lines
from ppcgc.emit.imports import import_line, in_import_order
from ppcgc.emit.names import class_name
from ppcgc.emit.slot_code import SlotCode, in_test
from ppcgc.emit.source import (
    WIDTH,
    Code,
    Identifier,
    call,
    class_header,
    code,
    docstring,
    dotted,
    identifier,
    lines,
    literal,
    signature,
    subscript,
    tuple_of,
)
from ppcgc.emit.tensors import TensorView, output_view
from ppcgc.ir import (
    STAGE_GROUPS,
    AbsentEager,
    BatchCount,
    BatchSource,
    Binding,
    BoundaryValue,
    EqualsBuckets,
    Family,
    LiteralValue,
    PaddedValue,
    Place,
    SlotValue,
    SourceRows,
    ViewValue,
)
from ppcgc.plan import KindPlan, RunnerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """An attribute of a slots class."""

    name: Identifier
    type: Code
    annotation: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsClass:
    name: Identifier
    doc: Code
    fields: tuple[FieldView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordView:
    """A keyword of the forward: its type in the model's Protocol, and what it is given."""

    name: Identifier
    type: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceView:
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
    later: bool
    batch: Identifier
    protocols: tuple[ProtocolClass, ...]
    slots: Identifier
    slots_classes: tuple[SlotsClass, ...]
    inputs: Identifier
    model: Identifier
    base: Identifier
    table: tuple[Code, ...]
    shapes: tuple[Code, ...]
    host_slots: Code
    host_unpack: Code
    make_slots: Code
    loads: bool
    load: Code
    bind_slots: Code
    bind_checks: Code | None
    capture_fills: tuple[Code, ...]
    absent: tuple[tuple[Code, Code], ...]
    full_shapes: bool
    keywords: tuple[KeywordView, ...]
    keyword_names: Code
    forward: Code
    places: tuple[PlaceView, ...]
    imports: tuple[Code, ...]
    inputs_header: Code
    base_header: Code
    model_forward: Code
    signatures: dict[str, Code]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    padded: Code
    live: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerView:
    name: Identifier
    name_text: Code
    doc: Code
    extents: Identifier
    axes: tuple[Identifier, ...]
    axis_names: Code
    counts: Code
    count_protocols: tuple[ProtocolClass, ...]
    count_batch: Identifier
    buckets: tuple[BucketRow, ...]
    buckets_line: Code
    extents_body: Code
    choose_body: Code
    outputs: Identifier
    outputs_source: Identifier
    outputs_header: Code
    buckets_head: Code
    rings: tuple[Code, ...]
    signatures: dict[str, Code]
    output_tensors: tuple[TensorView, ...]
    imports_torch: bool
    require_graph: Code
    kinds: tuple[KindView, ...]


def runner_view(family: Family, planned: RunnerPlan) -> RunnerView:
    runner = planned.runner
    counts = _count_paths(family, planned)
    tree = PathTree()
    tensors = tuple(output_view(family, output) for output in runner.outputs)
    outputs, source = class_name(runner.name, "outputs"), class_name(runner.name, "results")
    for axis, path in counts.items():
        rows = isinstance(family.axis(axis).live, SourceRows)
        tree.add(path, Code("object" if rows else "int"), _count_note(axis), optional=False)
    batch = (runner.name, "counts")
    extents = class_name(runner.name, "extents")
    return RunnerView(
        name=identifier(runner.name),
        name_text=literal(runner.name),
        doc=docstring(runner.doc or f"The {runner.name} runner of {family.name}"),
        extents=extents,
        axes=tuple(identifier(axis) for axis in planned.axes),
        axis_names=tuple_of(tuple(literal(axis) for axis in planned.axes)),
        counts=_count_table(family, counts),
        count_protocols=tuple(tree.classes(*batch)),
        count_batch=class_name(*batch),
        buckets=tuple(
            BucketRow(
                padded=call(extents, tuple(literal(n) for n in bucket.padded), 4),
                live=call(extents, tuple(literal(n) for n in bucket.live), 4),
            )
            for bucket in planned.buckets
        ),
        buckets_line=Code(f"# {family.source}:{runner.buckets[0].span.line}"),
        extents_body=lines(extents_lines(family, planned, counts), 4),
        choose_body=lines(choose_lines(family, planned), 4),
        outputs=outputs,
        outputs_source=source,
        outputs_header=class_header(source, Code("rt.Outputs"), (extents, outputs)),
        buckets_head=code("BUCKETS: {} = {{", subscript(Code("Mapping"), (extents, extents), 9)),
        rings=tuple(ring for tensor in tensors for ring in (tensor.ring,) if ring is not None),
        signatures=_runner_signatures(extents, outputs, class_name(*batch)),
        output_tensors=tensors,
        imports_torch=any(output.dtype != "model" for output in runner.outputs),
        require_graph=literal(runner.dispatch.require_graph),
        kinds=tuple(_kind_view(family, planned, kind, counts) for kind in planned.kinds),
    )


def _runner_signatures(
    extents: Identifier, outputs: Identifier, counts: Identifier
) -> dict[str, Code]:
    rows = (code("rows: {}", extents), code("full: {}", extents))
    live, buffers = code("live: {}", extents), code("buffers: {}", outputs)
    result = Code("result: object")
    choice = code("rt.Choice[{}]", extents)
    return {
        "buffers": signature("buffers", (Code("arena: rt.DeviceArena"), *rows), outputs, 4),
        "store": signature("store", (result, buffers), Code("None"), 4),
        "trim": signature("trim", (buffers, live), outputs, 4),
        "eager": signature("eager", (result, live), outputs, 4),
        "extents": call(Code("def extents"), (code("batch: {}", counts),), 0, f" -> {extents}:"),
        "choose": call(Code("def choose"), (live,), 0, f" -> {choice}:"),
    }


def _count_note(axis: str) -> Code:
    return Code(f"# live {axis}")


def _count_paths(family: Family, planned: RunnerPlan) -> dict[str, tuple[str, ...]]:
    """The batch path that each axis' live count is read from, where it is read at all."""
    paths: dict[str, tuple[str, ...]] = {}
    follows = {rule.axis for rule in planned.runner.buckets if isinstance(rule, EqualsBuckets)}
    for axis in planned.axes:
        live = family.axis(axis).live
        if axis in follows:
            continue
        if isinstance(live, BatchCount):
            paths[axis] = live.path
        elif isinstance(live, SourceRows):
            paths[axis] = rows_source(planned, axis)
    return paths


def rows_source(planned: RunnerPlan, axis: str) -> tuple[str, ...]:
    """The first source whose rows are the axis' live count, of a slot that every stage has."""
    for slot in planned.runner.slots:
        if (
            isinstance(slot.source, BatchSource)
            and slot.stages == frozenset(Place)
            and any(e.axis == axis and e.scale == 1 and e.offset == 0 for e in slot.shape)
        ):
            return slot.source.path
    raise ValueError(f"axis {axis} has no source to count")


def _count_table(family: Family, counts: dict[str, tuple[str, ...]]) -> Code:
    """``{"tokens": "num_tokens"}``: host integers only, rows need no entry of their own."""
    entries = [
        f"{literal(axis)}: {literal('.'.join(path))}"
        for axis, path in counts.items()
        if isinstance(family.axis(axis).live, BatchCount)
    ]
    flat = f"COUNTS: Mapping[str, str] = {{{', '.join(entries)}}}"
    if len(flat) <= WIDTH:
        return Code(flat)
    inner = "".join(f"\n    {entry}," for entry in entries)
    return Code(f"COUNTS: Mapping[str, str] = {{{inner}\n}}")


# ---------------------------------------------------------------- one kind of stage


def _kind_view(
    family: Family, planned: RunnerPlan, kind: KindPlan, counts: dict[str, tuple[str, ...]]
) -> KindView:
    runner = planned.runner.name
    name = (runner, kind.name)
    slots = [SlotCode(family, slot) for slot in kind.slots]
    in_block = [slot for slot in slots if slot.in_block]
    later = kind.places[0] in STAGE_GROUPS["later"]
    slots_class = class_name(*name, "slots")
    bindings = {b.keyword: b for b in planned.runner.forward.at(kind.places[0])}
    keywords = _keywords(planned)
    load = [statement for slot in slots for statement in slot.load()]
    checks = [check for slot in slots for check in slot.bind_checks()]
    extents, batch = class_name(runner, "extents"), class_name(*name, "batch")
    boundary = identifier("Boundary") if later else Code("None")
    inputs, base = class_name(*name, "inputs"), identifier(f"_{class_name(*name)}")
    typed = tuple(
        KeywordView(
            name=identifier(word), type=_keyword_type(bindings.get(word), kind, slots_class)
        )
        for word in keywords
    )
    carried = (boundary,) if later else ()
    return KindView(
        module=identifier(f"{runner}_{kind.name}"),
        doc=docstring(_kind_doc(family, planned, kind)),
        later=later,
        batch=batch,
        protocols=tuple(_batch_tree(family, slots, counts).classes(*name, "batch")),
        slots=slots_class,
        slots_classes=tuple(_slots_classes(slots, *name)),
        inputs=inputs,
        inputs_header=class_header(
            inputs, Code("rt.Inputs"), (extents, batch, Code("Dims"), slots_class)
        ),
        model=class_name(*name, "model"),
        model_forward=call(
            Code("def forward"),
            (
                Code("self"),
                *([Code("*")] if typed else []),
                *(code("{}: {}", word.name, word.type) for word in typed),
            ),
            4,
            " -> object: ...",
        ),
        base=base,
        base_header=class_header(
            base,
            Code("rt.LaterStage" if later else "rt.EntryStage"),
            (extents, batch, Code("Dims"), slots_class, *carried, Code("OutT")),
        ),
        imports=_imports(family, planned, kind, extents),
        signatures=_kind_signatures(extents, batch, slots_class, boundary),
        table=tuple(slot.info(12) for slot in slots),
        shapes=tuple(code("{}: {}", slot.key, slot.shape("rows")) for slot in slots),
        host_slots=call(
            Code("return self.block"), (Code("rows"), *(slot.key for slot in in_block)), 8
        ),
        host_unpack=_unpack(["counts", *(str(slot.rows) for slot in in_block)]),
        make_slots=_construct(slots_class, slots, _allocate(in_block), *name),
        loads=bool(load),
        load=lines(load, 8),
        bind_slots=_construct(slots_class, slots, SlotCode.bind, *name),
        bind_checks=lines(checks, 8) if checks else None,
        capture_fills=_capture_fills(slots),
        absent=tuple((in_test(s.source()), s.key) for s in slots if s.wants_eager_when_absent()),
        full_shapes=len(in_block) < len(slots),
        keywords=typed,
        keyword_names=_keyword_names(keywords),
        forward=call(
            Code("return self.model"),
            tuple(
                code("{}={}", identifier(word), _given(bindings.get(word), kind))
                for word in keywords
            ),
            8,
        ),
        places=tuple(_place_view(family, runner, place) for place in kind.places),
    )


def _kind_signatures(
    extents: Identifier, batch: Identifier, slots: Identifier, boundary: Code
) -> dict[str, Code]:
    rows, live = code("rows: {}", extents), code("live: {}", extents)
    shapes = Code("dict[str, tuple[int, ...]]")
    given = code("batch: {}", batch)
    passed = (code("slots: {}", slots), code("boundary: {}", boundary), rows)
    return {
        "shapes": signature("shapes", (rows,), shapes, 4),
        "host_slots": signature("host_slots", (rows,), Code("tuple[rt.HostSlot, ...]"), 4),
        "bind": signature("bind", (given, code("boundary: {}", boundary), live), slots, 4),
        "capture_fills": signature(
            "capture_fills", (code("padded: {}", extents),), Code("dict[str, float]"), 4
        ),
        "absent": signature("absent", (given,), Code("str | None"), 4),
        "extents": signature("extents", (given,), extents, 4),
        "choose": signature("choose", (live,), code("rt.Choice[{}]", extents), 4),
        "forward": signature("forward", passed, Code("object"), 4),
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
    results = [str(class_name(runner, word)) for word in ("outputs", "results")] if gives else []
    shared = ["AXES", "BUCKETS", "COUNTS", str(extents), *results, "choose", "extents"]
    modules = {
        "boundary": boundary,
        "family": ["FINGERPRINT", "Dims", *(["State"] if family.states else [])],
        runner: shared,
    }
    return tuple(
        import_line(module, in_import_order(names))
        for module, names in sorted(modules.items())
        if names
    )


def _kind_doc(family: Family, planned: RunnerPlan, kind: KindPlan) -> str:
    places = " and ".join(place.value for place in kind.places)
    return (
        f"{family.name}.{planned.runner.name}, {places} stages: their slots, how a batch fills "
        "them, and their runners."
    )


def _unpack(names: list[str]) -> Code:
    """``counts, input_ids_rows = host.begin()``, on several lines where it is long."""
    if len(names) == 1:
        return Code(f"({names[0]},) = host.begin()")
    flat = f"{', '.join(names)} = host.begin()"
    if len(flat) + 8 <= 100:
        return Code(flat)
    inner = "".join(f"\n{' ' * 12}{name}," for name in names)
    return Code(f"({inner}\n{' ' * 8}) = host.begin()")


FieldCode = Callable[[SlotCode, str, int], Code]  # a slot, ``name=``, where the line stands


def _allocate(in_block: list[SlotCode]) -> FieldCode:
    """What each slot is made of: a view of the block, or its own rows in the arena."""
    places = {slot.key: place for place, slot in enumerate(in_block)}

    def made(slot: SlotCode, field: str, indent: int) -> Code:
        if slot.key in places:
            return Code(f"{field}host[{literal(places[slot.key])}]")
        return slot.device_rows(field, indent)

    return made


def _construct(cls: Identifier, slots: list[SlotCode], field: FieldCode, *name: str) -> Code:
    """``PrefillFirstSlots(input_ids=..., pp=PrefillFirstPpSlots(...))``, always one a line."""
    indent = 12
    pad = " " * indent
    parts: list[Code] = []
    for group, members in _groups(slots):
        if group is None:
            parts += [field(slot, f"{slot.name}=", indent) for slot in members]
            continue
        inner = "".join(
            f"\n{pad}    {field(s, f'{identifier(s.slot.name)}=', indent + 4)}," for s in members
        )
        made = class_name(*name, group, "slots")
        parts.append(Code(f"{identifier(group)}={made}({inner}\n{pad})"))
    body = "".join(f"\n{pad}{part}," for part in parts)
    return Code(f"{cls}({body}\n{' ' * 8})" if parts else f"{cls}()")


def _capture_fills(slots: list[SlotCode]) -> tuple[Code, ...]:
    """``"slot_mapping": 0`` for each slot whose rows do not follow from its role at capture."""
    fills = ((slot.key, slot.capture_fill()) for slot in slots)
    return tuple(code("{}: {}", key, fill) for key, fill in fills if fill is not None)


def _groups(slots: list[SlotCode]) -> Iterator[tuple[str | None, list[SlotCode]]]:
    """Slots without a group, each where it was declared, and each group once."""
    done: set[str] = set()
    for slot in slots:
        group = slot.slot.group
        if group is None:
            yield None, [slot]
        elif group not in done:
            done.add(group)
            yield group, [other for other in slots if other.slot.group == group]


def _slots_classes(slots: list[SlotCode], *name: str) -> Iterator[SlotsClass]:
    """The class of each group, then the class of the stage."""
    fields: list[FieldView] = []
    for group, members in _groups(slots):
        own = tuple(
            FieldView(name=identifier(s.slot.name), type=s.type(), annotation=s.annotation())
            for s in members
        )
        if group is None:
            fields += own
            continue
        made = class_name(*name, group, "slots")
        yield SlotsClass(name=made, doc=docstring(f"The group {group} of the slots."), fields=own)
        fields.append(FieldView(name=identifier(group), type=made, annotation=Code("# a group")))
    doc = "The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."
    yield SlotsClass(name=class_name(*name, "slots"), doc=docstring(doc), fields=tuple(fields))


def _batch_tree(
    family: Family, slots: list[SlotCode], counts: dict[str, tuple[str, ...]]
) -> PathTree:
    tree = PathTree()
    for axis, path in counts.items():
        if isinstance(family.axis(axis).live, BatchCount):
            tree.add(path, Code("int"), _count_note(axis), optional=False)
    for slot in sorted(slots, key=lambda slot: not slot.slot.cast):  # the uncast one has the say
        path_ = slot.batch_path()
        if path_ is not None:
            host = slot.slot.residency.value == "host"
            type_ = Code("rt.HostSource" if host else "Tensor")
            optional = type(slot.slot.absent).__name__ != "AbsentError"
            tree.add(path_, type_, slot.annotation(), optional=optional and not host)
    return tree


# ---------------------------------------------------------------- the forward


def _keywords(planned: RunnerPlan) -> list[str]:
    """Every keyword that any place binds, in the order written."""
    forward = planned.runner.forward
    return list(dict.fromkeys(b.keyword for place in Place for b in forward.at(place)))


def _slot_path(kind: KindPlan, name: str) -> Code | None:
    for planned in kind.slots:
        if planned.slot.qualified == name:
            return code("slots.{}", dotted(tuple(name.split("."))))
    return None


def _slot_type(kind: KindPlan, name: str) -> Code | None:
    """``Tensor``, or ``Tensor | None`` where an eager step may lack the slot."""
    for planned in kind.slots:
        if planned.slot.qualified == name:
            maybe = isinstance(planned.slot.absent, AbsentEager)
            return Code("Tensor | None" if maybe else "Tensor")
    return None


def _given(binding: Binding | None, kind: KindPlan) -> Code:
    """What a keyword is given; None where the place does not bind it or lacks the slot."""
    nothing = Code("None")
    if binding is None:
        return nothing
    match binding.value:
        case SlotValue(name=name):
            return _slot_path(kind, name) or nothing
        case BoundaryValue(key=None):
            return Code("boundary")
        case BoundaryValue(key=key):
            return code("boundary.{}", identifier(key or ""))
        case PaddedValue(axis=axis):
            return code("rows.{}", identifier(axis))
        case ViewValue():
            return Code("slots")
        case LiteralValue(value=value):
            return literal(value)


def _keyword_names(keywords: list[str]) -> Code:
    names = tuple(literal(word) for word in keywords)
    if len(names) < 2:
        return code("KEYWORDS: tuple[str, ...] = {}", tuple_of(names))
    return call(Code("KEYWORDS = "), names, 0)


def _keyword_type(binding: Binding | None, kind: KindPlan, slots: Identifier) -> Code:
    nothing = Code("None")
    if binding is None:
        return nothing
    match binding.value:
        case SlotValue(name=name):
            return _slot_type(kind, name) or nothing
        case BoundaryValue(key=None):
            return Code("Boundary")
        case BoundaryValue():
            return Code("Tensor")
        case PaddedValue():
            return Code("int")
        case ViewValue():
            return slots
        case LiteralValue(value=value):
            return nothing if value is None else Code(type(value).__name__)


def _place_view(family: Family, runner: str, place: Place) -> PlaceView:
    gives_outputs = place in STAGE_GROUPS["last"]
    outputs = class_name(runner, "outputs") if gives_outputs else identifier("Boundary")
    source = class_name(runner, "results") if gives_outputs else identifier("HandedOn")
    what = {
        Place.ONLY: "The whole model in one stage.",
        Place.FIRST: "The first stage: takes the batch, hands on a boundary.",
        Place.MIDDLE: "A stage between two others: takes a boundary, hands one on.",
        Place.LAST: "The last stage: takes a boundary, gives the outputs.",
    }
    return PlaceView(
        name=class_name(runner, place.value),
        doc=docstring(what[place]),
        place=Code(f"rt.Place.{place.name}"),
        outputs=source,
        outputs_type=outputs,
    )
