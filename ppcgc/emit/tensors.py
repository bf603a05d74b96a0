"""Code for tensors that leave a stage: keys of the boundary and outputs of the last stage."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.expressions import python
from ppcgc.emit.names import dtype_code, names_for, padded_dim
from ppcgc.emit.slot_code import extent_text
from ppcgc.emit.source import Code, Identifier, call, code, identifier, literal
from ppcgc.ir import (
    BoundaryKey,
    Extent,
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


def _extent(extent: Extent, rows: str) -> Code:
    if extent.axis is None:
        return python(extent.expr, names_for(extent.expr, dims="self.dims", live=rows, padded=rows))
    scaled = f"{extent.scale} * " if extent.scale != 1 else ""
    offset = f" + {extent.offset}" if extent.offset else ""
    return Code(f"{scaled}{rows}.{identifier(extent.axis)}{offset}")


def _shape(shape: tuple[Extent, ...], rows: str) -> Code:
    parts = [str(_extent(extent, rows)) for extent in shape]
    return Code(f"({', '.join(parts)}{',' if len(parts) == 1 else ''})")


def _note(shape: tuple[Extent, ...], dtype: str, line: str) -> Code:
    return Code(f"# [{', '.join(extent_text(extent) for extent in shape)}] {dtype}, {line}")


def _live_rows(tensor: Code, shape: tuple[Extent, ...]) -> Code:
    dim = padded_dim(shape)
    if dim is None:
        return tensor
    return code("{}.narrow({}, 0, {})", tensor, literal(dim), _extent(shape[dim], "live"))


def _buffer(prefix: str, name: str, shape: tuple[Extent, ...], dtype: Code) -> Code:
    key = literal(f"{prefix}.{name}")
    parts = (key, _shape(shape, "rows"), _shape(shape, "full"), dtype)
    return call(code("{}=arena.rows", identifier(name)), parts, ARGUMENT)


def _eager(name: str, value: Code, shape: tuple[Extent, ...], dtype: Code) -> Code:
    parts = (value, _shape(shape, "live"), dtype, Code("self.device"), literal(name))
    return call(code("{}=rt.check_result", identifier(name)), parts, ARGUMENT)


def output_view(output: Output, source: str) -> TensorView:
    """An output of the last stage."""
    name, dtype = identifier(output.name), dtype_code(output.dtype, "self.dtype")
    picked = _picked(output)
    live = _live_rows(code("buffers.{}", name), output.shape)
    kept, ring = live, None
    if isinstance(output.keep, KeepClone):
        kept = code("{}.clone()", live)
    elif isinstance(output.keep, KeepRing):
        kept = code("self.{}_ring.keep({})", name, live)
        ring = literal(output.keep.entries)
    return TensorView(
        name=name,
        key=literal(output.name),
        annotation=_note(output.shape, output.dtype, f"{source}:{output.span.line}"),
        buffer=_buffer("output", output.name, output.shape, dtype),
        store=call(Code("rt.store"), (code("buffers.{}", name), picked, literal(output.name)), 8),
        trim=code("{}={}", name, kept),
        eager=_eager(output.name, picked, output.shape, dtype),
        ring=ring,
    )


def _picked(output: Output) -> Code:
    if output.path is None:
        return Code("result")
    if isinstance(output.path, int):
        return code("rt.pick_index(result, {})", literal(output.path))
    return code("rt.pick_key(result, {})", literal(output.path))


def boundary_view(key: BoundaryKey, source: str) -> TensorView:
    """A key of the boundary, on the sending and on the receiving side."""
    name, dtype = identifier(key.name), dtype_code(key.dtype, "self.dtype")
    label = literal(f"boundary.{key.name}")
    dim = padded_dim(key.shape)
    into = code("into.{}", name)
    along = (code("dim={}", literal(dim)),) if dim else ()
    received = code("source.{}", name)
    rows = _extent(key.shape[dim], "live") if dim is not None else Code("1")
    check = (received, _shape(key.shape, "live"), dtype, Code("self.device"), label)
    return TensorView(
        name=name,
        key=literal(key.name),
        annotation=_note(key.shape, key.dtype, f"{source}:{key.span.line}"),
        buffer=_buffer("handed", key.name, key.shape, dtype),
        store=call(Code("rt.store"), (code("buffers.{}", name), name, label), 8),
        trim=code("{}={}", name, _live_rows(code("buffers.{}", name), key.shape)),
        eager=_eager(key.name, name, key.shape, dtype),
        received=_buffer("received", key.name, key.shape, dtype),
        receive=call(Code("rt.receive_rows"), (into, received, rows, label, *along), 8),
        reset=_reset(key, name, dim),
        check=call(code("{}=rt.check_received", name), check, ARGUMENT),
    )


def _reset(key: BoundaryKey, name: Identifier, dim: int | None) -> Code | None:
    """The statement that gives padded rows of a received key their padding again."""
    if dim is None or isinstance(key.padding, KeepPadding):
        return None
    extent = key.shape[dim]
    count = code("rt.axis_count(live, axes, {})", literal(extent.axis))
    if extent.scale != 1 or extent.offset:
        count = Code(f"{count} * {extent.scale} + {extent.offset}")
    parts: tuple[Code, ...] = (code("rows.{}", name), count)
    along = (code("dim={}", literal(dim)),) if dim else ()
    if isinstance(key.padding, RepeatLastPadding):
        return call(Code("rt.reset_repeat_last"), (*parts, *along), 8)
    value = Code("0")
    if isinstance(key.padding, FillPadding):
        fill = key.padding.value
        value = (
            literal(fill)
            if isinstance(fill, int | float)
            else python(fill, names_for(fill, dims="self.dims", live="live", padded="rows"))
        )
    return call(Code("rt.reset_fill"), (*parts, value, *along), 8)
