"""What the templates of a runner print: buckets, the choice of a step, outputs, slots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ppcgc.emit.batch_protocol import PathTree, ProtocolClass
from ppcgc.emit.batch_reads import add_reads, count_reads, presence_reads
from ppcgc.emit.choose_code import ChooseCode
from ppcgc.emit.kind_view import KindView, kind_view
from ppcgc.emit.late_code import LateView, late_view
from ppcgc.emit.names import class_name
from ppcgc.emit.shapes import line_of
from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.slot_facts import slot_info
from ppcgc.emit.source import (
    Code,
    Identifier,
    call,
    class_header,
    code,
    docstring,
    identifier,
    lines,
    literal,
    signature,
    tuple_of,
)
from ppcgc.emit.tensors import OutputView, output_view
from ppcgc.ir import AbsentError, BatchSource, Family, Group, Place
from ppcgc.plan import RunnerPlan
from ppcgc.plan.buckets import group_column
from ppcgc.plan.stages import slot_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerView:
    """The module of a runner, the table of its slots, and its kinds of stage."""

    name: Identifier
    name_text: Code
    doc: Code
    extents: Identifier
    columns: tuple[Identifier, ...]
    buckets: Code
    buckets_line: Code
    late: LateView | None
    count_protocols: tuple[ProtocolClass, ...]
    steps: Identifier
    axis_names: Code
    column_names: Code
    counts: Code
    axis_counts: Code
    settings: tuple[Code, ...]
    extents_body: Code
    limits_body: Code | None
    choose_body: Code
    outputs: Identifier
    outputs_header: Code
    output_tensors: tuple[OutputView, ...]
    rings: Code | None
    views_only: bool
    infos: Code
    held: Code
    picked: Code
    trimmed: Code
    signatures: dict[str, Code]
    imports_torch: bool
    slots_doc: Code
    slots_import_torch: bool
    slots: Code
    kinds: tuple[KindView, ...]


def runner_view(family: Family, planned: RunnerPlan) -> RunnerView:
    runner = planned.runner
    tensors = tuple(output_view(family, runner, output) for output in runner.outputs)
    outputs, results = class_name(runner.name, "outputs"), class_name(runner.name, "results")
    counts, extents = class_name(runner.name, "counts"), class_name(runner.name, "extents")
    tree = PathTree()
    add_reads(tree, [*count_reads(family, planned), *presence_reads(planned)])
    for slot in runner.slots:
        if isinstance(slot.source, BatchSource) and not isinstance(slot.absent, AbsentError):
            tree.loosen(slot.source.path)
    chosen = ChooseCode(family, planned)
    return RunnerView(
        name=identifier(runner.name),
        name_text=literal(runner.name),
        doc=docstring(runner.doc or f"The {runner.name} runner of {family.name}."),
        extents=extents,
        columns=tuple(identifier(column) for column in planned.columns),
        buckets=_mapping(
            "",
            tuple(
                code("{}: {}", _numbers(bucket.padded), _numbers(bucket.live))
                for bucket in planned.buckets
            ),
        ),
        buckets_line=Code(f"# {line_of(runner.buckets[0].span)}"),
        late=late_view(family, planned),
        count_protocols=tuple(tree.classes(runner.name, "counts")),
        steps=class_name(runner.name, "steps"),
        axis_names=_names("axes", planned.axes),
        column_names=Code("columns: ClassVar[tuple[str, ...]] = axes")
        if planned.axes == planned.columns
        else _names("columns", planned.columns),
        counts=_counts(family, planned),
        axis_counts=Code("live")
        if planned.axes == planned.columns
        else code("live[:{}]", literal(len(planned.axes))),
        settings=tuple(_settings(family, planned)),
        extents_body=lines(chosen.extents_lines(), 8),
        limits_body=lines(limits, 8) if (limits := chosen.limits_lines()) else None,
        choose_body=lines(chosen.choose_lines(), 8),
        outputs=outputs,
        outputs_header=class_header(results, (Code("rt.Outputs"), (extents, outputs))),
        output_tensors=tensors,
        rings=_rings(tensors),
        views_only=all(tensor.is_view for tensor in tensors),
        infos=tuple_of(tuple(tensor.info for tensor in tensors)),
        held=call(outputs, tuple(tensor.member for tensor in tensors)),
        picked=_mapping("", tuple(tensor.picked for tensor in tensors)),
        trimmed=call(outputs, tuple(tensor.trim for tensor in tensors)),
        signatures=_signatures(extents, outputs, counts),
        imports_torch=any(output.dtype != "model" for output in runner.outputs),
        slots_doc=docstring(
            f"{family.name}.{runner.name}: every slot as the spec declares it, for captures, "
            "reports and checks."
        ),
        slots_import_torch=any(slot.dtype != "model" for slot in runner.slots),
        slots=tuple_of(
            tuple(
                slot_info(SlotCode(family, runner, slot_plan(slot), tuple(Place)))
                for slot in runner.slots
            )
        ),
        kinds=tuple(kind_view(family, planned, kind) for kind in planned.kinds),
    )


def _numbers(numbers: tuple[int, ...]) -> Code:
    return tuple_of(tuple(literal(number) for number in numbers))


def _names(word: str, names: tuple[str, ...]) -> Code:
    items = tuple(literal(name) for name in names)
    return code("{}: ClassVar[tuple[str, ...]] = {}", Code(word), tuple_of(items))


def _settings(family: Family, planned: RunnerPlan) -> Iterator[Code]:
    """What differs from the defaults of every stage."""
    runner = planned.runner
    if runner.dispatch.require_graph:
        yield Code("require_graph = True")
    if runner.transport != "eager":
        yield code("transport = {}", literal(runner.transport))
    if runner.compile != "none":
        yield code("compile = {}", literal(runner.compile))
    if runner.overlaps:
        yield _names("overlaps", runner.overlaps)
    groups = tuple(
        code("{}: {}", literal(group_column(axis.name)), _group_counts(axis.name, axis.group))
        for axis in family.axes
        if axis.name in planned.axes and axis.group is not None
    )
    if groups:
        yield _mapping("groups: ClassVar[Mapping[str, rt.GroupCounts]] = ", groups)


def _group_counts(axis: str, group: Group) -> Code:
    """``rt.GroupCounts("dp", "tokens", "all_tokens")``."""
    parts = (literal(group.over), literal(axis), literal(".".join(group.path)))
    return call(Code("rt.GroupCounts"), parts)


def _rings(tensors: tuple[OutputView, ...]) -> Code | None:
    """``ring_entries: ClassVar[...] = {"logits": 3}``."""
    rings = tuple(tensor.ring for tensor in tensors if tensor.ring is not None)
    if not rings:
        return None
    return _mapping("ring_entries: ClassVar[Mapping[str, int]] = ", rings)


def _mapping(head: str, entries: tuple[Code, ...]) -> Code:
    return Code(f"{head}{{{', '.join(map(str, entries))}}}")


def _signatures(extents: Identifier, outputs: Identifier, counts: Identifier) -> dict[str, Code]:
    rows, live = code("rows: {}", extents), code("live: {}", extents)
    infos, placed = Code("tuple[rt.TensorInfo, ...]"), Code("of: Mapping[str, Tensor]")
    return {
        "extents": signature("extents", (code("batch: {}", counts),), extents),
        "buckets": signature("buckets", (), code("Mapping[{}, {}]", extents, extents)),
        "follow_sizes": signature("follow_sizes", (rows,), extents),
        "follow_counts": signature("follow_counts", (rows,), extents),
        "limits": signature("check_limits", (live,), Code("None")),
        "choose": signature("choose", (live,), code("rt.Choice[{}]", extents)),
        "table": signature("table", (rows,), infos),
        "held": signature("held", (placed,), outputs),
        "trim": signature("trim", (code("buffers: {}", outputs), live), outputs),
    }


def _counts(family: Family, planned: RunnerPlan) -> Code:
    """``{"tokens": "num_tokens"}``: host integers, by column; rows need no entry of their own."""
    entries = tuple(
        code("{}: {}", literal(read.column), literal(".".join(read.path)))
        for read in count_reads(family, planned)
        if read.column is not None
    )
    return _mapping("counts: ClassVar[Mapping[str, str]] = ", entries)
