"""Checks of a host source's live values against the slot's role, as generated statements."""

from __future__ import annotations

from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.source import Code, call, code, identifier, literal
from ppcgc.expr.tree import Ref, Symbol
from ppcgc.ir import Role


def role_check(slot: SlotCode, head: Code, *subject: Code) -> list[Code]:
    """``head.check_index(subject, limit)``; nothing for device sources, which `verify` checks."""
    role, shape = slot.slot.role, slot.slot.shape
    if role.of is None or not shape or not slot.on_host:
        return []
    limit = (*subject, _of(slot))
    match role.role:
        case Role.INDEX:
            skips = (Code("skips_negative=True"),) if role.consumer_skips_negative else ()
            check, words = "check_index", (*limit, *skips)
        case Role.WRITE_INDEX:
            said = literal(role.consumer_skips_negative)
            check, words = "check_write_index", (*limit, code("skips_negative={}", said))
        case Role.OFFSETS:
            closed = literal(shape[slot.dim or 0].offset == 1)
            check, words = "check_offsets", (*limit, code("closed={}", closed))
        case Role.LENGTHS if role.of_kind == "axis":
            check, words = "check_lengths", limit
        case Role.LENGTHS:
            check, words = "check_bounded", limit
        case _:
            return []
    return [call(code("{}.{}", head, Code(check)), words)]


def _of(slot: SlotCode) -> Code:
    """The size that a role speaks of."""
    name = slot.slot.role.of or ""
    match slot.slot.role.of_kind:
        case "axis":
            return code("live.{}", identifier(name))
        case "state":
            return slot.loading.python(slot.family.state(name).rows)
        case _:
            return slot.loading.name(Ref(Symbol.DIM, name))
