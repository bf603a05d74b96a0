"""Code for tensors that leave a stage: keys of the boundary and outputs of the last stage."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.expressions import python
from ppcgc.emit.names import dtype_code, fixed_numbers, names_for, padded_dim
from ppcgc.emit.slot_code import extent_text
from ppcgc.emit.source import Code, Identifier, call, code, identifier, literal, tuple_of
from ppcgc.expr.tree import Expr
from ppcgc.ir import (
    BoundaryKey,
    Extent,
    Family,
    FillPadding,
    KeepClone,
    KeepPadding,
    KeepRing,
    Output,
    RepeatLastPadding,
)

ARGUMENT = 12  # indent of an argument of the call in a method's return


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """One tensor, as the templates of boundary and outputs print it."""

    name: Identifier
    key: Code
    annotation: Code
    buffer: Code
    store: Code
    trim: Code
    eager: Code
    ring: Code | None = None
    received: Code | None = None
    receive: Code | None = None
    reset: Code | None = None
    check: Code | None = None


class TensorCode:
    """The code of one tensor: its extents in a bucket, whole, or of the live rows."""

    def __init__(self, family: Family, tensor: Output | BoundaryKey) -> None:
        self.family = family
        self.tensor = tensor
        self.name = identifier(tensor.name)
        self.dtype = dtype_code(tensor.dtype, "self.dtype")
        self.dim = padded_dim(tensor.shape)

    def extent(self, extent: Extent, rows: str) -> Code:
        if extent.axis is None:
            return self.number(extent.expr)
        scaled = f"{extent.scale} * " if extent.scale != 1 else ""
        offset = f" + {extent.offset}" if extent.offset else ""
        return Code(f"{scaled}{rows}.{identifier(extent.axis)}{offset}")

    def number(self, expr: Expr) -> Code:
        """An expression over dims and capacities."""
        names = names_for(expr, dims="self.dims", live="live", padded="rows")
        return python(expr, {**names, **fixed_numbers(self.family)})

    def shape(self, rows: str) -> Code:
        return tuple_of(tuple(self.extent(extent, rows) for extent in self.tensor.shape))

    def annotation(self) -> Code:
        """``# [tokens, hidden] model, llama.yaml:24``."""
        shape = ", ".join(extent_text(extent) for extent in self.tensor.shape)
        line = f"{self.family.source}:{self.tensor.span.line}"
        return Code(f"# [{shape}] {self.tensor.dtype}, {line}")

    def live(self) -> Code:
        """How many rows of the padded dimension are live; all rows of a tensor without one."""
        shape = self.tensor.shape
        return self.extent(shape[self.dim or 0], "live") if shape else Code("1")

    def live_rows(self, whole: Code) -> Code:
        if self.dim is None:
            return whole
        return code("{}.narrow({}, 0, {})", whole, literal(self.dim), self.live())

    def buffer(self, prefix: str) -> Code:
        key = literal(f"{prefix}.{self.tensor.name}")
        parts = (key, self.shape("rows"), self.shape("full"), self.dtype)
        return call(code("{}=arena.rows", self.name), parts, ARGUMENT, after=1)

    def eager(self, value: Code) -> Code:
        label = literal(self.tensor.name)
        parts = (value, self.shape("live"), self.dtype, Code("self.device"), label)
        return call(code("{}=rt.check_result", self.name), parts, ARGUMENT, after=1)


def output_view(family: Family, output: Output) -> TensorView:
    """An output of the last stage."""
    tensor, name = TensorCode(family, output), identifier(output.name)
    picked = _picked(output)
    kept, ring = tensor.live_rows(code("buffers.{}", name)), None
    if isinstance(output.keep, KeepClone):
        kept = code("{}.clone()", kept)
    elif isinstance(output.keep, KeepRing):
        kept = code("self.{}_ring.keep({})", name, kept)
        entries = literal(output.keep.entries)
        parts = (Code("arena"), literal(output.name), tensor.shape("full"), tensor.dtype, entries)
        ring = call(code("self.{}_ring = rt.OutputRing", name), parts, 8)
    return TensorView(
        name=name,
        key=literal(output.name),
        annotation=tensor.annotation(),
        buffer=tensor.buffer("output"),
        store=call(Code("rt.store"), (code("buffers.{}", name), picked, literal(output.name)), 8),
        trim=code("{}={}", name, kept),
        eager=tensor.eager(picked),
        ring=ring,
    )


def _picked(output: Output) -> Code:
    if output.path is None:
        return Code("result")
    if isinstance(output.path, int):
        return code("rt.pick_index(result, {})", literal(output.path))
    return code("rt.pick_key(result, {})", literal(output.path))


def boundary_view(family: Family, key: BoundaryKey) -> TensorView:
    """A key of the boundary, on the sending and on the receiving side."""
    tensor, name = TensorCode(family, key), identifier(key.name)
    label = literal(f"boundary.{key.name}")
    into, received = code("into.{}", name), code("source.{}", name)
    along = (code("dim={}", literal(tensor.dim)),) if tensor.dim else ()
    check = (received, tensor.shape("live"), tensor.dtype, Code("self.device"), label)
    return TensorView(
        name=name,
        key=literal(key.name),
        annotation=tensor.annotation(),
        buffer=tensor.buffer("handed"),
        store=call(Code("rt.store"), (code("buffers.{}", name), name, label), 8),
        trim=code("{}={}", name, tensor.live_rows(code("buffers.{}", name))),
        eager=tensor.eager(name),
        received=tensor.buffer("received"),
        receive=call(Code("rt.receive_rows"), (into, received, tensor.live(), label, *along), 8),
        reset=_reset(tensor, key),
        check=call(code("{}=rt.check_received", name), check, ARGUMENT, after=1),
    )


def _reset(tensor: TensorCode, key: BoundaryKey) -> Code | None:
    """The statement that gives padded rows of a received key their padding again."""
    dim = tensor.dim
    if dim is None or isinstance(key.padding, KeepPadding):
        return None
    extent = key.shape[dim]
    scaled = f" * {extent.scale}" if extent.scale != 1 else ""
    offset = f" + {extent.offset}" if extent.offset else ""
    count = Code(f"rt.axis_count(live, axes, {literal(extent.axis)}){scaled}{offset}")
    parts: tuple[Code, ...] = (code("rows.{}", tensor.name), count)
    along = (code("dim={}", literal(dim)),) if dim else ()
    if isinstance(key.padding, RepeatLastPadding):
        return call(Code("rt.reset_repeat_last"), (*parts, *along), 8)
    value = Code("0")
    if isinstance(key.padding, FillPadding):
        fill = key.padding.value
        value = literal(fill) if isinstance(fill, int | float) else tensor.number(fill)
    return call(Code("rt.reset_fill"), (*parts, value, *along), 8)
