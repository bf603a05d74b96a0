"""The typed slots of a kind of stage: their classes, and how an object of them is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ppcgc.emit.batch_source import under
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

Member = Callable[[SlotCode, str, int], Code]  # a slot, ``name=``, where the line stands


def placed(slots: list[SlotCode], *name: str) -> Code:
    """The object of slots that lie in memory, by name: ``PrefillFirstSlots(ids=of["ids"], ...)``."""

    def taken(slot: SlotCode, head: str, key: str) -> Code:
        there = slot.condition("rows") is None
        return Code(f"{head}of[{literal(key)}]" if there else f"{head}of.get({literal(key)})")

    def rows(slot: SlotCode, head: str, indent: int) -> Code:
        return taken(slot, head, slot.slot.qualified)

    def twin(slot: SlotCode, head: str, indent: int) -> Code:
        return taken(slot, head, f"{slot.slot.qualified}_host")

    return _construct(slots, rows, twin, *name)


def bound(slots: list[SlotCode], *name: str) -> tuple[list[Code], Code]:
    """Statements first, then the slots of an eager step.

    A slot that is there on a condition is made before the object, under that condition.
    """
    statements: list[Code] = []
    for slot in slots:
        condition = slot.condition("live")
        if condition is not None:
            statements += _under_condition(slot, condition)

    def rows(slot: SlotCode, head: str, indent: int) -> Code:
        if slot.condition("live") is not None:
            return Code(f"{head}{slot.name}_slot")
        return bind_expression(slot, head, indent)

    def twin(slot: SlotCode, head: str, indent: int) -> Code:
        if slot.condition("live") is not None:
            return Code(f"{head}{slot.name}_slot_host")
        return bind_mirror(slot, head, indent)

    return statements, _construct(slots, rows, twin, *name)


def _under_condition(slot: SlotCode, condition: Code) -> list[Code]:
    local, mirrored = f"{slot.name}_slot", slot.slot.mirror is not None
    twin = f"{local}_host"
    nothing = [code("{}: Tensor | None = None", Code(local))]
    made = [bind_expression(slot, f"{local} = ", BODY + 4)]
    if mirrored:
        nothing.append(code("{}: Tensor | None = None", Code(twin)))
        made.append(bind_mirror(slot, f"{twin} = ", BODY + 4))
    return [*nothing, code("if {}:", condition), *map(under, made)]


def _construct(slots: list[SlotCode], rows: Member, twin: Member, *name: str) -> Code:
    """``PrefillFirstSlots(input_ids=..., pp=PrefillFirstPpSlots(...))``, always one a line."""
    pad = " " * MEMBER
    parts: list[Code] = []
    for group, members in _groups(slots):
        if group is None:
            parts += _members(members, rows, twin, MEMBER)
            continue
        inner = "".join(
            f"\n{pad}    {member}," for member in _members(members, rows, twin, MEMBER + 4)
        )
        made = class_name(*name, group, "slots")
        parts.append(Code(f"{identifier(group)}={made}({inner}\n{pad})"))
    body = "".join(f"\n{pad}{part}," for part in parts)
    made = class_name(*name, "slots")
    return Code(f"{made}({body}\n{' ' * BODY})" if parts else f"{made}()")


def _members(slots: list[SlotCode], rows: Member, twin: Member, indent: int) -> Iterator[Code]:
    for slot in slots:
        name = identifier(slot.slot.name)
        yield rows(slot, f"{name}=", indent)
        if slot.slot.mirror is not None:
            yield twin(slot, f"{name}_host=", indent)
