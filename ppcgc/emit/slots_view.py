"""The typed slots of a kind of stage: their classes, and how an object of them is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ppcgc.emit.names import class_name
from ppcgc.emit.slot_bind import bind_expression, bind_mirror
from ppcgc.emit.slot_code import BODY, SlotCode
from ppcgc.emit.source import Code, Identifier, code, docstring, identifier, literal

MEMBER = 12  # indent of a member of the object that a method returns


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """An attribute of a slots class."""

    name: Identifier
    type: Code
    annotation: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsClass:
    name: Identifier
    doc: Code
    fields: tuple[FieldView, ...]


def slots_classes(slots: list[SlotCode], *name: str) -> Iterator[SlotsClass]:
    """The class of each group, then the class of the stage."""
    fields: list[FieldView] = []
    for group, members in _groups(slots):
        own = tuple(field for slot in members for field in _fields(slot))
        if group is None:
            fields += own
            continue
        made = class_name(*name, group, "slots")
        yield SlotsClass(name=made, doc=docstring(f"The group {group} of the slots."), fields=own)
        fields.append(FieldView(name=identifier(group), type=made, annotation=Code("# a group")))
    doc = "The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."
    yield SlotsClass(name=class_name(*name, "slots"), doc=docstring(doc), fields=tuple(fields))


def _fields(slot: SlotCode) -> Iterator[FieldView]:
    name = identifier(slot.slot.name)
    yield FieldView(name=name, type=slot.type(), annotation=slot.annotation())
    if slot.slot.mirror is not None:
        twin = code("{}, on the host", slot.annotation())
        yield FieldView(name=identifier(f"{name}_host"), type=slot.type(), annotation=twin)


def _groups(slots: list[SlotCode]) -> Iterator[tuple[str | None, list[SlotCode]]]:
    """Slots without a group, each where it was declared, and each group once."""
    done: set[str] = set()
    for slot in slots:
        group = slot.slot.group
        if group is None:
            yield None, [slot]
        elif group not in done:
            done.add(group)
            yield group, [other for other in slots if other.slot.group == group]


# ---------------------------------------------------------------- making the object

MakeRows = Callable[[SlotCode, str, int], Code]  # a slot, the text before it, where the line stands


def allocation(slots: list[SlotCode], *name: str) -> tuple[list[Code], Code]:
    """Statements first, then the slots of a bucket: views of the block, or rows in the arena."""
    places = {slot.key: at for at, slot in enumerate(s for s in slots if s.in_block)}

    def rows(slot: SlotCode, head: str, indent: int) -> Code:
        if slot.key in places:
            return Code(f"{head}host[{literal(places[slot.key])}]")
        return slot.device_rows(head, indent)

    def twin(slot: SlotCode, head: str, indent: int) -> Code:
        return slot.mirror_rows(head, indent)

    return _made(slots, rows, twin, "rows", *name)


def binding(slots: list[SlotCode], *name: str) -> tuple[list[Code], Code]:
    """Statements first, then the slots of an eager step."""
    return _made(slots, bind_expression, bind_mirror, "live", *name)


def _made(
    slots: list[SlotCode], rows: MakeRows, twin: MakeRows, over: str, *name: str
) -> tuple[list[Code], Code]:
    """A slot that is there on a condition is made before the object, under that condition."""
    statements: list[Code] = []
    for slot in slots:
        condition = slot.condition(over)
        if condition is None:
            continue
        local = f"{slot.name}_slot"
        statements += [
            code("{}: Tensor | None = None", Code(local)),
            *([Code(f"{local}_host: Tensor | None = None")] if slot.slot.mirror else []),
            code("if {}:", condition),
            Code(f"    {rows(slot, f'{local} = ', BODY + 4)}"),
            *(
                [Code(f"    {twin(slot, f'{local}_host = ', BODY + 4)}")]
                if slot.slot.mirror
                else []
            ),
        ]
    return statements, _construct(slots, rows, twin, over, *name)


def _members(
    slot: SlotCode, name: str, rows: MakeRows, twin: MakeRows, over: str, indent: int
) -> Iterator[Code]:
    if slot.condition(over) is not None:
        yield Code(f"{name}={slot.name}_slot")
        if slot.slot.mirror is not None:
            yield Code(f"{name}_host={slot.name}_slot_host")
        return
    yield rows(slot, f"{name}=", indent)
    if slot.slot.mirror is not None:
        yield twin(slot, f"{name}_host=", indent)


def _construct(
    slots: list[SlotCode], rows: MakeRows, twin: MakeRows, over: str, *name: str
) -> Code:
    """``PrefillFirstSlots(input_ids=..., pp=PrefillFirstPpSlots(...))``, always one a line."""
    pad = " " * MEMBER
    parts: list[Code] = []
    for group, members in _groups(slots):
        if group is None:
            for slot in members:
                parts += _members(slot, str(slot.name), rows, twin, over, MEMBER)
            continue
        inner = "".join(
            f"\n{pad}    {member},"
            for slot in members
            for member in _members(
                slot, str(identifier(slot.slot.name)), rows, twin, over, MEMBER + 4
            )
        )
        made = class_name(*name, group, "slots")
        parts.append(Code(f"{identifier(group)}={made}({inner}\n{pad})"))
    body = "".join(f"\n{pad}{part}," for part in parts)
    made = class_name(*name, "slots")
    return Code(f"{made}({body}\n{' ' * BODY})" if parts else f"{made}()")
