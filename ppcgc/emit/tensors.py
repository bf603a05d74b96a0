"""Code for tensors that leave a stage: keys of the boundary and outputs of the last stage."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.names import dtype_code
from ppcgc.emit.scope import Scope
from ppcgc.emit.shapes import annotation, live_rows_code, padded_dims, shape_code
from ppcgc.emit.source import Code, Identifier, call, code, identifier, literal
from ppcgc.ir import (
    BoundaryKey,
    Family,
    FillPadding,
    KeepClone,
    KeepPadding,
    KeepRing,
    Output,
    RepeatLastPadding,
)

ARGUMENT = 12  # indent of an argument of the call in a method's return
BODY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """One output of the last stage, as the template prints it."""

    name: Identifier
    annotation: Code
    buffer: Code
    store: Code
    trim: Code
    eager: Code
    ring: Code | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryKeyView:
    """One key of the boundary, on the sending and on the receiving side.

    Statements are indented for a method's body; those of a key that crosses on a condition stand
    under it already.
    """

    name: Identifier
    key: Code
    type: Code
    annotation: Code
    buffer: Code
    store: Code
    trim: Code
    eager: Code
    received: Code
    receive: Code
    reset: Code | None
    check: Code
    crossing: Code  # the condition over ``dims`` and ``cut``
    by_runtime: bool


class TensorCode:
    """The code of one tensor: its extents in a bucket, whole, or of the live rows."""

    def __init__(self, family: Family, tensor: Output | BoundaryKey) -> None:
        self.scope = Scope(family=family)
        self.tensor = tensor
        self.name = identifier(tensor.name)
        self.dtype = dtype_code(tensor.dtype, "self.dtype")
        self.dims = padded_dims(tensor.shape, tensor.axes)

    def shape(self, rows: str) -> Code:
        return shape_code(self.scope, self.tensor.shape, rows)

    def annotation(self) -> Code:
        return annotation(self.tensor.shape, self.tensor.dtype, self.tensor.span)

    def live_rows(self, whole: Code) -> Code:
        return live_rows_code(self.scope, whole, self.tensor.shape)

    def buffer(self, prefix: str, head: str, indent: int) -> Code:
        key = literal(f"{prefix}.{self.tensor.name}")
        parts = (key, self.shape("rows"), self.shape("full"), self.dtype)
        return call(Code(f"{head}arena.rows"), parts, indent, after=1)

    def eager(self, value: Code, head: str, indent: int) -> Code:
        label = literal(self.tensor.name)
        parts = (value, self.shape("live"), self.dtype, Code("self.device"), label)
        return call(Code(f"{head}rt.check_result"), parts, indent, after=1)


def output_view(family: Family, output: Output) -> OutputView:
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
        ring = call(code("self.{}_ring = rt.OutputRing", name), parts, BODY)
    return OutputView(
        name=name,
        annotation=tensor.annotation(),
        buffer=tensor.buffer("output", f"{name}=", ARGUMENT),
        store=call(
            Code("rt.store"), (code("buffers.{}", name), picked, literal(output.name)), BODY
        ),
        trim=code("{}={}", name, kept),
        eager=tensor.eager(picked, f"{name}=", ARGUMENT),
        ring=ring,
    )


def _picked(output: Output) -> Code:
    if output.path is None:
        return Code("result")
    if isinstance(output.path, int):
        return code("rt.pick_index(result, {})", literal(output.path))
    return code("rt.pick_key(result, {})", literal(output.path))


# ---------------------------------------------------------------- the boundary


def boundary_view(family: Family, key: BoundaryKey) -> BoundaryKeyView:
    """A key of the boundary.

    Every method makes each key as a local variable; a key with ``when`` is made under its
    condition and is None on other cuts.
    """
    tensor, name = TensorCode(family, key), identifier(key.name)
    on_cut = Scope(family=family, dims="dims", cut="cut")
    crossing = on_cut.python(key.when) if key.when is not None else Code("True")
    crosses = code("{} in self.keys()", literal(key.name))
    indent = BODY if key.when is None else BODY + 4
    label = literal(f"boundary.{key.name}")
    stored = (code("buffers.{}", name), code("values[{}]", literal(key.name)), label)
    shape = (tensor.shape("live"), tensor.dtype, Code("self.device"), label)
    check = call(code("{} = rt.check_received", name), (code("source.{}", name), *shape), indent)
    return BoundaryKeyView(
        name=name,
        key=literal(key.name),
        type=Code("Tensor" if key.when is None else "Tensor | None"),
        annotation=tensor.annotation(),
        buffer=_local(key, crosses, tensor.buffer("handed", f"{name} = ", indent)),
        store=_given(key, "buffers", call(Code("rt.store"), stored, indent)),
        trim=_local(
            key,
            code("buffers.{} is not None", name),
            code("{} = {}", name, tensor.live_rows(code("buffers.{}", name))),
        ),
        eager=_local(
            key,
            crosses,
            tensor.eager(code("values[{}]", literal(key.name)), f"{name} = ", indent),
        ),
        received=_local(key, crosses, tensor.buffer("received", f"{name} = ", indent)),
        receive=_given(key, "into", _receive(tensor, key, label, indent)),
        reset=_reset(tensor, key, indent),
        check=_local(key, crosses, check),
        crossing=crossing,
        by_runtime=key.by_runtime,
    )


def _local(key: BoundaryKey, crosses: Code, assignment: Code) -> Code:
    """An assignment, or the same under the key's condition with None before it."""
    if key.when is None:
        return assignment
    nothing = f"{identifier(key.name)}: Tensor | None = None"
    pad = " " * BODY
    return Code(f"{nothing}\n{pad}if {crosses}:\n{pad}    {assignment}")


def _given(key: BoundaryKey, holder: str, statement: Code) -> Code:
    """A statement on a key that may be None on its holder."""
    if key.when is None:
        return statement
    return Code(f"if {holder}.{identifier(key.name)} is not None:\n{' ' * (BODY + 4)}{statement}")


def _receive(tensor: TensorCode, key: BoundaryKey, label: Code, indent: int) -> Code:
    name = tensor.name
    live = tensor.shape("live")
    return call(
        Code("rt.receive_rows"),
        (code("into.{}", name), code("source.{}", name), live, label),
        indent,
    )


def _reset(tensor: TensorCode, key: BoundaryKey, indent: int) -> Code | None:
    """The statements that give padded rows of a received key their padding again."""
    if not tensor.dims or isinstance(key.padding, KeepPadding):
        return None
    statements = [_reset_axis(tensor, key, dim, indent) for dim in tensor.dims]
    return _given(key, "rows", Code(f"\n{' ' * indent}".join(map(str, statements))))


def _reset_axis(tensor: TensorCode, key: BoundaryKey, dim: int, indent: int) -> Code:
    extent = key.shape[dim]
    scaled = f" * {extent.scale}" if extent.scale != 1 else ""
    offset = f" + {extent.offset}" if extent.offset else ""
    count = Code(f"rt.axis_count(live, axes, {literal(extent.axis)}){scaled}{offset}")
    parts: tuple[Code, ...] = (code("rows.{}", tensor.name), count)
    along = (code("dim={}", literal(dim)),) if dim else ()
    if isinstance(key.padding, RepeatLastPadding):
        return call(Code("rt.reset_repeat_last"), (*parts, *along), indent)
    value = Code("0")
    if isinstance(key.padding, FillPadding):
        value = tensor.scope.value(key.padding.value)
    return call(Code("rt.reset_fill"), (*parts, value, *along), indent)
