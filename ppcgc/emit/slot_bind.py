"""What an eager step binds for one slot: the batch's own rows, uncopied, at live size."""

from __future__ import annotations

from ppcgc.emit.batch_source import source_expression
from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.slot_load import absent_value, each_row
from ppcgc.emit.slot_roles import role_check
from ppcgc.emit.source import Code, call, code, identifier
from ppcgc.expr.tree import Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import (
    AbsentFill,
    BatchSource,
    BoundarySource,
    CallerSource,
    ComputeSource,
    ConstSource,
    GraphSource,
    HookSource,
)


def bind_expression(slot: SlotCode) -> Code:
    """The slot of an eager step."""
    match slot.slot.source:
        case BatchSource():
            return _from_batch(slot)
        case BoundarySource(key=key):
            return code("boundary.{}", identifier(key))
        case ComputeSource(expr=expr) if any(r.symbol is Symbol.ROW for r in refs(expr)):
            values = each_row(slot, expr, "live")
            if slot.two_axes:
                return call(Code("rows.computed_cells"), (slot.key, values, slot.dims_pair()))
            parts = (slot.key, values, *slot.dim_word())
            return call(Code("rows.computed"), parts)
        case ComputeSource(expr=expr):
            value = slot.binding.python(expr)
        case ConstSource(value=constant):
            value = slot.binding.value(constant)
        case CallerSource() | GraphSource() | HookSource():
            value = Code("0")
    return call(Code("rows.filled"), (slot.key, value))


def _from_batch(slot: SlotCode) -> Code:
    verb = "rows.upload" if slot.on_host else "rows.own"
    if slot.slot.host_only:
        verb = "rows.on_host"
    if slot.wants_eager_when_absent():
        verb += "_if_given"
    absent: tuple[Code, ...] = ()
    if isinstance(slot.slot.absent, AbsentFill):
        absent = (code("absent={}", absent_value(slot)),)
    words = (*slot.cast_word(), *slot.broadcast_word(), *absent)
    return call(Code(verb), (slot.key, slot.source(), *words))


def bind_mirror(slot: SlotCode) -> Code:
    """The host twin of an eager step."""
    mirror = slot.slot.mirror
    if mirror is None:
        raise TypeError(f"slot {slot.slot.qualified} has no mirror")
    absent = (Code("absent=0"),) if mirror.optional else ()
    parts = (slot.key, source_expression(mirror.path), *absent)
    return call(Code("rows.on_host"), parts)


def bind_checks(slot: SlotCode) -> list[Code]:
    """Checks of an eager step's host rows, as a load makes them."""
    return role_check(slot, Code("rows"), slot.key)
