"""Straight-line statements that fill one slot: live rows by its source, others by its padding."""

from __future__ import annotations

from ppcgc.emit.batch_source import is_absent, source_expression, under
from ppcgc.emit.slot_code import SlotCode, by_step
from ppcgc.emit.slot_roles import role_check
from ppcgc.emit.source import Code, call, code, dotted, identifier, literal
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentFill,
    BatchSource,
    CallerSource,
    ComputeSource,
    FillPadding,
    HookSource,
    OneAxisPadding,
    Padding,
    PaddingByAxis,
    RepeatLastPadding,
    ZeroPadding,
)


def load_statements(slot: SlotCode) -> list[Code]:
    """Statements that fill the slot, under its heading; none for what nobody loads."""
    conditional = slot.optional and not (slot.in_block and slot.condition("rows") is None)
    body = _body(slot)
    if body and conditional:
        note = "  # it is, but for eager steps" if slot.condition("rows") is None else ""
        there = code("{} is not None", slot.on_view())
        if slot.slot.mirror is not None:  # a twin is there where its slot is
            there = code("{} and {} is not None", there, slot.mirror_name())
        body = [code("if {}:{}", there, Code(note)), *map(under, body)]
    heading = slot.unwritten_heading() if slot.written_late else slot.heading()
    return [heading, *body] if body else []


def _body(slot: SlotCode) -> list[Code]:
    match slot.slot.source:
        case BatchSource() if slot.in_block:
            body = _load_block(slot)
        case BatchSource():
            body = _load_device(slot)
        case ComputeSource(expr=expr):
            body = [_compute(slot, expr)]
        case CallerSource() | HookSource():
            body = _unwritten(slot)
        case _:
            body = []
    return [*body, *_load_mirror(slot)] if slot.slot.mirror is not None else body


# ---------------------------------------------------------------- the host block


def _source(slot: SlotCode) -> Code:
    """The source, where an absent one was looked for before."""
    looked = isinstance(slot.slot.absent, AbsentFill)
    return code("batch.{}", dotted(slot.path())) if looked else slot.source()


def _load_block(slot: SlotCode) -> list[Code]:
    rows, source = slot.rows, _source(slot)
    words = (*slot.cast_word(), *slot.broadcast_word())
    if slot.dim is None:
        put = call(code("{}.put_whole", rows), (source, *words))
        fill = code("{}.set_all({})", rows, absent_value(slot))
    else:
        put = call(code("{}.put", rows), (source, slot.live(), *words))
        fill = code("{}.set_live({}, {})", rows, slot.live(), absent_value(slot))
    check = role_check(slot, rows, slot.live())
    return _unless_absent(slot, [put], fill) + _pad_block(slot) + check


def _pad_block(slot: SlotCode) -> list[Code]:
    """Padding that the block's image does not hold already."""
    padding = slot.slot.padding
    if isinstance(padding, RepeatLastPadding):
        return [code("{}.pad_repeat_last({})", slot.rows, slot.live())]
    if isinstance(padding, FillPadding) and by_step(padding):
        value = slot.loading.value(padding.value)
        return [code("{}.pad_fill({}, {})", slot.rows, slot.live(), value)]
    return []


def _compute(slot: SlotCode, expr: Expr) -> Code:
    if any(ref.symbol is Symbol.ROW for ref in refs(expr)):
        values = each_row(slot, expr, "padded")
        if slot.two_axes:
            return call(code("{}.set_cells", slot.rows), (values, slot.dims_pair()))
        return call(code("{}.set_rows", slot.rows), (values,))
    return code("{}.set_all({})", slot.rows, slot.loading.python(expr))


def each_row(slot: SlotCode, expr: Expr, padded: str) -> Code:
    """``[expr for row in range(padded.requests)]``; a list of the numbers where it is ``row``.

    Of a slot with two axes a list of rows of the first, each a list of cells.
    """
    scope = slot.loading if padded == "padded" else slot.binding
    if slot.two_axes:
        counts = (slot.extent(slot.slot.shape[dim], padded) for dim in slot.dims)
        rows, cells = (
            code("for row_{} in range({})", identifier(axis), count)
            for axis, count in zip(slot.slot.axes, counts, strict=True)
        )
        return code("[[{} {}] {}]", scope.python(expr), cells, rows)
    count = slot.extent(slot.slot.shape[slot.dim or 0], padded)
    if isinstance(expr, Ref):
        return code("list(range({}))", count)
    return code("[{} for row in range({})]", scope.python(expr), count)


# ---------------------------------------------------------------- one address for all buckets


def _load_device(slot: SlotCode) -> list[Code]:
    view, source = slot.on_view(), _source(slot)
    tail = _moved_tail(slot)
    if tail is not None:
        return [call(Code("host.move_rows"), (view, source, slot.live(), slot.key, tail))]
    verb = "upload" if slot.on_host else "copy"
    words = (*slot.cast_word(), *slot.broadcast_word())
    if slot.two_axes:
        where = (slot.live_pair(), slot.dims_pair())
        copy = call(Code(f"rt.{verb}_cells"), (view, source, *where, slot.key, *words))
    elif slot.dim is None:
        copy = call(Code(f"rt.{verb}_whole"), (view, source, slot.key, *words))
    else:
        dim = slot.dim_word()
        parts = (view, source, slot.live(), slot.key, *dim, *words)
        copy = call(Code(f"rt.{verb}_rows"), parts)
    check = role_check(slot, Code("rt"), slot.key, slot.rows)
    if check:
        copy = code("{} = {}", slot.rows, copy)
    fill = _fill_live(slot, view, absent_value(slot))
    return _unless_absent(slot, [copy, *check], fill) + _pad_device(slot, view, slot.slot.padding)


def _moved_tail(slot: SlotCode) -> Code | None:
    """What rows past live hold in a slot that is loaded in one launch with others.

    None for a slot that needs more than its rows copied as they are and a constant after them.
    """
    own = slot.on_host or slot.two_axes or slot.dim != 0 or slot.optional
    changed = slot.cast_word() or slot.broadcast_word() or isinstance(slot.slot.absent, AbsentFill)
    if own or changed or role_check(slot, Code("rt"), slot.key, slot.rows):
        return None
    match slot.slot.padding:
        case ZeroPadding():
            return Code("0")
        case RepeatLastPadding():
            return Code("None")
        case FillPadding(value=value) as padding if not by_step(padding):
            return slot.loading.value(value)
        case _:
            return None


def _fill_live(slot: SlotCode, view: Code, value: Code) -> Code:
    """Every live row holds ``value``; all of a slot without a padded axis."""
    if slot.two_axes:
        where = (slot.live_pair(), slot.dims_pair())
        return call(Code("rt.fill_cells"), (view, *where, value))
    if slot.dim is None:
        return call(Code("rt.fill_whole"), (view, value))
    return call(Code("rt.fill_live"), (view, slot.live(), value, *slot.dim_word()))


def late_statements(slot: SlotCode) -> list[Code]:
    """Statements that pad what the caller or a hook wrote after the load, under a heading."""
    if not slot.written_late:
        return []
    body = _pad_device(slot, slot.on_view(), slot.slot.padding)
    if body and slot.optional:
        body = [code("if {} is not None:", slot.on_view()), *map(under, body)]
    return [slot.heading(), *body] if body else []


def _unwritten(slot: SlotCode) -> list[Code]:
    """A slot before the caller or a hook writes it: nothing in it is an earlier step's.

    It is zero, as an eager step binds it, but for what ``fill`` and ``keep`` say of rows past live.
    """
    view, zero = slot.on_view(), Code("0")
    before = tuple(
        ZeroPadding() if isinstance(each, RepeatLastPadding) else each
        for each in slot.slot.paddings
    )
    if all(isinstance(each, ZeroPadding) for each in before):
        return [call(Code("rt.fill_whole"), (view, zero))]
    if len(before) == 2:
        padding: Padding = PaddingByAxis(first=before[0], second=before[1])
    else:
        padding = before[0]
    return [_fill_live(slot, view, zero), *_pad_device(slot, view, padding)]


def _pad_device(slot: SlotCode, view: Code, padding: Padding | None) -> list[Code]:
    if padding is None:
        return []
    if slot.two_axes:
        pair = (
            padding
            if isinstance(padding, PaddingByAxis)
            else PaddingByAxis(first=padding, second=padding)
        )
        where = (view, slot.live_pair(), slot.dims_pair())
        return [
            *_pad_cells(slot, "second", pair.second, where),
            *_pad_cells(slot, "first", pair.first, where),
        ]
    if isinstance(padding, PaddingByAxis):
        raise TypeError(f"slot {slot.slot.qualified} has one axis and two paddings")
    dim = slot.dim_word()
    match padding:
        case ZeroPadding():
            return [call(Code("rt.pad_zero"), (view, slot.live(), *dim))]
        case FillPadding():
            parts = (view, slot.live(), _fill(slot, view, padding), *dim)
            return [call(Code("rt.pad_fill"), parts)]
        case RepeatLastPadding():
            return [call(Code("rt.pad_repeat_last"), (view, slot.live(), *dim))]
        case _:
            return []


def _pad_cells(
    slot: SlotCode, which: str, padding: OneAxisPadding, where: tuple[Code, ...]
) -> list[Code]:
    """Cells past the live rows of one of two axes. The first axis' go over the second's."""
    match padding:
        case ZeroPadding():
            return [call(Code(f"rt.pad_{which}"), (*where, Code("0")))]
        case FillPadding():
            return [call(Code(f"rt.pad_{which}"), (*where, _fill(slot, where[0], padding)))]
        case RepeatLastPadding():
            return [call(Code(f"rt.repeat_last_{which}"), where)]
        case _:
            return []


def _fill(slot: SlotCode, view: Code, padding: FillPadding) -> Code:
    """The value of padded rows on the device; one of the step may be too large for them."""
    value = slot.loading.value(padding.value)
    return call(Code("rt.fitting"), (slot.key, value, view)) if by_step(padding) else value


def _load_mirror(slot: SlotCode) -> list[Code]:
    """The host twin, from its own host source; the device is never read back."""
    mirror, twin = slot.slot.mirror, slot.mirror_name()
    if mirror is None:
        return []
    source = source_expression(mirror.path)
    if mirror.optional:
        source = code("batch.{}", dotted(mirror.path))
    label = literal(f"{slot.slot.qualified} (mirror)")
    if slot.two_axes:
        where = (slot.live_pair(), slot.dims_pair())
        copy = call(Code("rt.upload_cells"), (twin, source, *where, label))
    elif slot.dim is None:
        copy = call(Code("rt.upload_whole"), (twin, source, label))
    else:
        dim = slot.dim_word()
        copy = call(Code("rt.upload_rows"), (twin, source, slot.live(), label, *dim))
    if mirror.optional:
        test, empty = code("if {}:", is_absent(mirror.path)), _fill_live(slot, twin, Code("0"))
        body = [test, under(empty), Code("else:"), under(copy)]
    else:
        body = [copy]
    return [*body, *_pad_device(slot, twin, slot.slot.padding)]


# ---------------------------------------------------------------- absent sources


def _unless_absent(slot: SlotCode, copy: list[Code], fill: Code) -> list[Code]:
    if not isinstance(slot.slot.absent, AbsentFill):
        return copy
    return [
        code("if {}:", is_absent(slot.path())),
        under(fill),
        Code("else:"),
        *map(under, copy),
    ]


def absent_value(slot: SlotCode) -> Code:
    """What the live rows hold when the source is None and `absent: {fill: v}` says so."""
    absent = slot.slot.absent
    return literal(absent.value) if isinstance(absent, AbsentFill) else Code("0")
