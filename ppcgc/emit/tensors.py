"""Code for tensors that leave a stage: keys of the boundary and outputs of the last stage."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.batch_source import under
from ppcgc.emit.names import dtype_code
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import annotation, extent_code, padded_dims, shape_code
from ppcgc.emit.source import (
    Code,
    Identifier,
    call,
    code,
    comment,
    identifier,
    lines,
    literal,
    tuple_of,
)
from ppcgc.expr.tree import Bool
from ppcgc.ir import (
    BoundaryKey,
    Family,
    FillPadding,
    KeepClone,
    KeepPadding,
    KeepRing,
    KeepView,
    Output,
    RepeatLastPadding,
    Runner,
)

BODY = 8  # indent of a statement in a method


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """One output of the last stage, as the template prints it."""

    name: Identifier
    annotation: Code
    info: Code
    member: Code
    picked: Code
    trim: Code
    ring: Code | None
    is_view: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryKeyView:
    """One key of the boundary, on the sending and on the receiving side.

    ``crosses`` is None for a key that crosses every cut, ``never`` says that it crosses none, of
    this runner or by a binding, which knows all cuts: it is None everywhere. Statements are
    indented for a method's body.
    """

    name: Identifier
    key: Code
    type: Code
    annotation: Code
    doc: Code | None
    info: Code
    crosses: Code | None
    never: bool
    member: Code
    trim: Code
    receive: Code | None
    reset: Code | None
    by_runtime: bool
    split: Code | None
    scattered: bool


class TensorCode:
    """The code of one tensor: its extents in a bucket, whole, or of the live rows."""

    def __init__(
        self, family: Family, tensor: Output | BoundaryKey, lowered: tuple[tuple[str, int], ...]
    ) -> None:
        self.scope = Scope(family=family, lowered=lowered)
        self.tensor = tensor
        self.name = identifier(tensor.name)
        self.key = literal(tensor.name)
        self.dtype = dtype_code(tensor.dtype, "self.dtype")
        self.dims = padded_dims(tensor.shape, tensor.axes)
        sharded = isinstance(tensor, BoundaryKey) and tensor.content == "sharded"
        self.split = self.dims[0] if sharded and self.dims else None  # over ranks of tp

    def annotation(self) -> Code:
        return annotation(self.tensor.shape, self.tensor.dtype, self.tensor.span)

    def info(self) -> Code:
        """``rt.TensorInfo("hidden_states", (rows.tokens, self.dims.hidden), self.dtype)``."""
        shape = shape_code(self.scope, self.tensor.shape, "rows")
        parts = (self.key, shape, self.dtype)
        return call(Code("rt.TensorInfo"), parts)

    def live_rows(self, *, may_lack: bool = False) -> Code:
        """``buffers.hidden_states.narrow(0, 0, live.tokens)``, along each padded dimension."""
        whole = code("buffers.{}", self.name)
        cuts = [
            (literal(dim), extent_code(self.scope, extent, "live"))
            for dim, extent in enumerate(self.tensor.shape)
            if extent.axis is not None
        ]
        if self.split is not None:
            cuts.sort(key=lambda cut: cut[0] != literal(self.split))  # what is split comes first
            along = (code("({}, {})", *cut) for cut in cuts)
            return call(Code("rt.cut_part"), (whole, Code("self.dims.tp"), *along))
        if len(cuts) == 1 and not may_lack:
            return code("{}.narrow({}, 0, {})", whole, *cuts[0])
        if not cuts:
            return whole
        return call(Code("rt.cut_rows"), (whole, *(code("({}, {})", *cut) for cut in cuts)))

    def live_shape(self, buffer: Code) -> Code:
        """``(live.tokens, self.dims.hidden)``; of a part, the live rows in this rank's buffer."""
        if self.split is None:
            return shape_code(self.scope, self.tensor.shape, "live")
        extents = [extent_code(self.scope, extent, "live") for extent in self.tensor.shape]
        rows = code("{}.shape[{}]", buffer, literal(self.split))
        parts = (extents[self.split], rows, Code("self.dims.tp"))
        extents[self.split] = call(Code("rt.live_part"), parts)
        return tuple_of(tuple(extents))


def output_view(family: Family, runner: Runner, output: Output) -> OutputView:
    """An output of the last stage."""
    tensor = TensorCode(family, output, runner.axis_max)
    kept, ring, is_view = tensor.live_rows(), None, isinstance(output.keep, KeepView)
    if isinstance(output.keep, KeepClone):
        kept = code("{}.clone()", kept)
    elif isinstance(output.keep, KeepRing):
        kept = call(Code("self.kept"), (tensor.key, kept))
        ring = code("{}: {}", tensor.key, literal(output.keep.entries))
    return OutputView(
        name=tensor.name,
        annotation=tensor.annotation(),
        info=tensor.info(),
        member=code("{}=of[{}]", tensor.name, tensor.key),
        picked=code("{}: {}", tensor.key, _picked(output)),
        trim=code("{}={}", tensor.name, kept),
        ring=ring,
        is_view=is_view,
    )


def _picked(output: Output) -> Code:
    if output.path is None:
        return Code("result")
    if isinstance(output.path, int):
        return code("rt.pick_index(result, {})", literal(output.path))
    return code("rt.pick_key(result, {})", literal(output.path))


# ---------------------------------------------------------------- the boundary


def boundary_view(family: Family, key: BoundaryKey) -> BoundaryKeyView:
    """A key of the boundary; one with ``when`` is None on cuts that it does not cross."""
    tensor, name = TensorCode(family, key, ()), identifier(key.name)
    trim = tensor.live_rows(may_lack=key.when is not None)
    if key.when is None:
        type_, crosses, member = "Tensor", None, code("of[{}]", tensor.key)
    elif key.never:
        type_, crosses, member, trim = "Tensor | None", None, Code("None"), Code("None")
    else:
        always = key.when == Bool(True)
        type_, crosses = "Tensor | None", None if always else tensor.scope.python(key.when)
        member = code("of.get({})", tensor.key)
    return BoundaryKeyView(
        name=name,
        key=tensor.key,
        type=Code(type_),
        annotation=tensor.annotation(),
        doc=comment(key.doc, 4) if key.doc else None,
        info=tensor.info(),
        crosses=crosses,
        never=key.never,
        member=code("{}={}", name, member),
        trim=code("{}={}", name, trim),
        receive=None if key.never else _receive(tensor, key),
        reset=None if key.never else _reset(tensor, key),
        by_runtime=key.by_runtime,
        split=None
        if tensor.split is None or key.never
        else code("{}: {}", tensor.key, literal(tensor.split)),
        scattered=key.wire == "scatter_gather" and not key.never,
    )


def _receive(tensor: TensorCode, key: BoundaryKey) -> Code:
    parts = (
        code("into.{}", tensor.name),
        code("source.{}", tensor.name),
        tensor.live_shape(code("into.{}", tensor.name)),
        literal(f"boundary.{key.name}"),
    )
    return _if_it_crosses(key, "into", [call(Code("host.receive_rows"), parts)])


def _reset(tensor: TensorCode, key: BoundaryKey) -> Code | None:
    """The statements that give padded rows of a received key their padding again."""
    if not tensor.dims or isinstance(key.padding, KeepPadding):
        return None
    return _if_it_crosses(key, "rows", [_reset_axis(tensor, key, dim) for dim in tensor.dims])


def _reset_axis(tensor: TensorCode, key: BoundaryKey, dim: int) -> Code:
    extent = key.shape[dim]
    scaled = f" * {extent.scale}" if extent.scale != 1 else ""
    offset = f" + {extent.offset}" if extent.offset else ""
    count = Code(f"rt.axis_count(live, axes, {literal(extent.axis)}){scaled}{offset}")
    if dim == tensor.split:  # counted from the first row of this rank's part
        rows = code("rows.{}.shape[{}]", tensor.name, literal(dim))
        count = code("{} - {}", count, call(Code("rt.part_start"), (rows, Code("self.dims.tp"))))
    parts: tuple[Code, ...] = (code("rows.{}", tensor.name), count)
    along = (code("dim={}", literal(dim)),) if dim else ()
    if isinstance(key.padding, RepeatLastPadding):
        return call(Code("self.past_live.repeat_last"), (*parts, *along))
    value = Code("0")
    if isinstance(key.padding, FillPadding):
        value = tensor.scope.value(key.padding.value)
    return call(Code("self.past_live.fill"), (*parts, value, *along))


def _if_it_crosses(key: BoundaryKey, holder: str, statements: list[Code]) -> Code:
    """Statements on a key that may be None on its holder."""
    if key.when is None:
        return lines(statements, BODY)
    test = code("if {}.{} is not None:", Code(holder), identifier(key.name))
    return lines([test, *map(under, statements)], BODY)
