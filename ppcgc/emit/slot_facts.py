"""One slot as a row of the tables that captures, reports and `verify` read."""

from __future__ import annotations

from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.slot_text import declared, padding_text
from ppcgc.emit.source import Code, call, code, literal, tuple_of
from ppcgc.ir import AbsentKey, BoundarySource, Role


def slot_info(slot: SlotCode) -> Code:
    """``rt.SlotInfo(name=..., ...)`` with what differs from its defaults."""
    spec, path = slot.slot, slot.batch_path()
    parts = [
        code("name={}", slot.key),
        code("line={}", literal(slot.line)),
        code("axes={}", tuple_of(tuple(literal(axis) for axis in spec.axes))),
        code("dtype={}", Code("None") if spec.dtype == "model" else slot.dtype),
        code("padding={}", literal(padding_text(spec.padding))),
    ]
    if spec.role.role is not Role.DATA:
        parts.append(Code(f"role=rt.Role.{spec.role.role.name}"))
    if spec.role.of_kind == "axis":
        parts.append(code("of_axis={}", literal(spec.role.of)))
    if path is not None:
        parts.append(code("batch={}", literal(".".join(path))))
    if isinstance(spec.source, BoundarySource):
        parts.append(code("boundary={}", literal(spec.source.key)))
    if isinstance(spec.absent, AbsentKey):
        parts.append(code("presence={}", literal(spec.absent.scalar)))
    if spec.capture_hook is not None:
        parts.append(code("capture_hook={}", literal(spec.capture_hook)))
    if spec.mirror is not None:
        parts.append(code("mirror={}", literal(".".join(spec.mirror.path))))
    flags = {
        "cast": spec.cast,
        "host": slot.on_host,
        "mutable": spec.mutable,
        "broadcast": spec.broadcast,
        "host_only": spec.host_only,
        "in_block": slot.in_block,
    }
    parts += [Code(f"{word}=True") for word, stated in flags.items() if stated]
    if slot.two_axes:
        parts.append(code("dims={}", slot.dims_pair()))
    elif slot.dim:
        parts.append(code("dim={}", literal(slot.dim)))
    facts = declared(spec, slot.capacities)
    parts += [code("{}={}", Code(key), literal(value)) for key, value in facts.items()]
    return call(Code("rt.SlotInfo"), tuple(parts))


def capture_fill(slot: SlotCode) -> Code | None:
    """The value of every row at capture, where it does not follow from the role alone."""
    spec = slot.slot
    if spec.capture_fill is not None:
        return slot.loading.value(spec.capture_fill)
    if spec.role.role is Role.WRITE_INDEX and spec.role.of_kind == "state":
        return literal(slot.family.state(spec.role.of or "").reserved[0])
    return None
