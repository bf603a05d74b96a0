"""The typed slots of a kind of stage: their classes, and how an object of them is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ppcgc.emit.batch_source import under
from ppcgc.emit.names import class_name
from ppcgc.emit.slot_bind import bind_expression, bind_mirror
from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.source import Code, Identifier, call, code, comment, docstring, identifier, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """An attribute of a slots class."""

    name: Identifier
    type: Code
    annotation: Code
    doc: Code | None = None


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
    doc = comment(slot.slot.doc, 4) if slot.slot.doc else None
    yield FieldView(name=name, type=slot.type(), annotation=slot.annotation(), doc=doc)
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

Member = Callable[[SlotCode], Code]


def placed(slots: list[SlotCode], *name: str) -> Code:
    """The object of slots that lie in memory: ``PrefillFirstSlots(ids=of["ids"], ...)``."""

    def taken(slot: SlotCode, key: str) -> Code:
        there = slot.condition("rows") is None
        return code("of[{}]" if there else "of.get({})", literal(key))

    return _construct(
        slots,
        lambda slot: taken(slot, slot.slot.qualified),
        lambda slot: taken(slot, f"{slot.slot.qualified}_host"),
        *name,
    )


def bound(slots: list[SlotCode], *name: str) -> tuple[list[Code], Code]:
    """Statements first, then the slots of an eager step.

    A slot that is there on a condition is made before the object, under that condition.
    """
    statements: list[Code] = []
    for slot in slots:
        condition = slot.condition("live")
        if condition is not None:
            statements += _under_condition(slot, condition)

    def member(slot: SlotCode, made: Member, local: Code) -> Code:
        return made(slot) if slot.condition("live") is None else local

    made = _construct(
        slots,
        lambda slot: member(slot, bind_expression, _local(slot)),
        lambda slot: member(slot, bind_mirror, _local_twin(slot)),
        *name,
    )
    return statements, made


def _local(slot: SlotCode) -> Code:
    return Code(f"{slot.name}_slot")


def _local_twin(slot: SlotCode) -> Code:
    return Code(f"{slot.name}_slot_host")


def _under_condition(slot: SlotCode, condition: Code) -> list[Code]:
    members = [(_local(slot), bind_expression(slot))]
    if slot.slot.mirror is not None:
        members.append((_local_twin(slot), bind_mirror(slot)))
    return [
        *(code("{}: Tensor | None = None", local) for local, _ in members),
        code("if {}:", condition),
        *(under(code("{} = {}", local, made)) for local, made in members),
    ]


def _construct(slots: list[SlotCode], rows: Member, twin: Member, *name: str) -> Code:
    """``PrefillFirstSlots(input_ids=..., pp=PrefillFirstPpSlots(...))``."""
    parts: list[Code] = []
    for group, members in _groups(slots):
        own = tuple(_members(members, rows, twin))
        if group is None:
            parts += own
        else:
            made = call(class_name(*name, group, "slots"), own)
            parts.append(code("{}={}", identifier(group), made))
    return call(class_name(*name, "slots"), tuple(parts))


def _members(slots: list[SlotCode], rows: Member, twin: Member) -> Iterator[Code]:
    for slot in slots:
        name = identifier(slot.slot.name)
        yield code("{}={}", name, rows(slot))
        if slot.slot.mirror is not None:
            yield code("{}_host={}", name, twin(slot))
