"""What the template of a runner prints: extents, buckets, the choice of a step, outputs."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.batch_protocol import PathTree, ProtocolClass
from ppcgc.emit.batch_reads import add_reads, count_reads, presence_reads
from ppcgc.emit.choose_code import ChooseCode
from ppcgc.emit.kind_view import KindView, kind_view
from ppcgc.emit.names import class_name
from ppcgc.emit.shapes import line_of
from ppcgc.emit.source import (
    WIDTH,
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
    subscript,
    tuple_of,
)
from ppcgc.emit.tensors import OutputView, output_view
from ppcgc.ir import Family
from ppcgc.plan import RunnerPlan


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
    columns: tuple[Identifier, ...]
    axis_names: Code
    column_names: Code
    counts: Code
    count_protocols: tuple[ProtocolClass, ...]
    buckets: tuple[BucketRow, ...]
    buckets_line: Code
    buckets_head: Code
    extents_body: Code
    choose_body: Code
    outputs: Identifier
    outputs_header: Code
    rings: tuple[Code, ...]
    signatures: dict[str, Code]
    output_tensors: tuple[OutputView, ...]
    gives_outputs: bool
    imports_torch: bool
    require_graph: Code
    transport: Code
    compile: Code
    kinds: tuple[KindView, ...]


def runner_view(family: Family, planned: RunnerPlan) -> RunnerView:
    runner = planned.runner
    tensors = tuple(output_view(family, runner, output) for output in runner.outputs)
    outputs, source = class_name(runner.name, "outputs"), class_name(runner.name, "results")
    batch, extents = (runner.name, "counts"), class_name(runner.name, "extents")
    tree = PathTree()
    add_reads(tree, [*count_reads(family, planned), *presence_reads(planned)])
    chosen = ChooseCode(family, planned)
    columns = tuple(identifier(column) for column in planned.columns)
    return RunnerView(
        name=identifier(runner.name),
        name_text=literal(runner.name),
        doc=docstring(runner.doc or f"The {runner.name} runner of {family.name}"),
        extents=extents,
        columns=columns,
        axis_names=_names("AXES", planned.axes),
        column_names=Code("COLUMNS = AXES")
        if planned.axes == planned.columns
        else _names("COLUMNS", planned.columns),
        counts=_counts(family, planned),
        count_protocols=tuple(tree.classes(*batch)),
        buckets=tuple(
            BucketRow(
                padded=call(extents, tuple(literal(n) for n in bucket.padded), 4),
                live=call(extents, tuple(literal(n) for n in bucket.live), 4),
            )
            for bucket in planned.buckets
        ),
        buckets_line=Code(f"# {line_of(runner.buckets[0].span)}"),
        buckets_head=code("BUCKETS: {} = {{", subscript(Code("Mapping"), (extents, extents), 9)),
        extents_body=lines(chosen.extents_lines(), 4),
        choose_body=lines(chosen.choose_lines(), 4),
        outputs=outputs,
        outputs_header=class_header(source, Code("rt.Outputs"), (extents, outputs)),
        rings=tuple(tensor.ring for tensor in tensors if tensor.ring is not None),
        signatures=_signatures(extents, outputs, class_name(*batch)),
        output_tensors=tensors,
        gives_outputs=bool(tensors),
        imports_torch=any(output.dtype != "model" for output in runner.outputs),
        require_graph=literal(runner.dispatch.require_graph),
        transport=literal(runner.transport),
        compile=literal(runner.compile),
        kinds=tuple(kind_view(family, planned, kind) for kind in planned.kinds),
    )


def _names(constant: str, names: tuple[str, ...]) -> Code:
    items = tuple(literal(name) for name in names)
    flat = f"{constant} = {tuple_of(items)}"
    return Code(flat) if len(flat) <= WIDTH else call(Code(f"{constant} = "), items, 0)


def _signatures(extents: Identifier, outputs: Identifier, counts: Identifier) -> dict[str, Code]:
    rows = (code("rows: {}", extents), code("full: {}", extents))
    live, buffers = code("live: {}", extents), code("buffers: {}", outputs)
    result, boundary = Code("result: object"), Code("boundary: object")
    choice, dims = code("rt.Choice[{}]", extents), Code("dims: Dims")
    given = code("batch: {}", counts)
    return {
        "buffers": signature("buffers", (Code("arena: rt.DeviceArena"), *rows), outputs, 4),
        "store": signature("store", (result, buffers, boundary), Code("None"), 4),
        "trim": signature("trim", (buffers, live), outputs, 4),
        "eager": signature("eager", (result, boundary, live), outputs, 4),
        "extents": call(Code("def extents"), (given, dims), 0, f" -> {extents}:"),
        "choose": call(Code("def choose"), (live, dims), 0, f" -> {choice}:"),
    }


def _counts(family: Family, planned: RunnerPlan) -> Code:
    """``{"tokens": "num_tokens"}``: host integers, by column; rows need no entry of their own."""
    entries = [
        f"{literal(read.column)}: {literal('.'.join(read.path))}"
        for read in count_reads(family, planned)
        if read.column is not None
    ]
    flat = f"COUNTS: Mapping[str, str] = {{{', '.join(entries)}}}"
    if len(flat) <= WIDTH:
        return Code(flat)
    inner = "".join(f"\n    {entry}," for entry in entries)
    return Code(f"COUNTS: Mapping[str, str] = {{{inner}\n}}")
