"""The call of the model's forward: every keyword that any place binds, by keyword."""

from __future__ import annotations

from dataclasses import dataclass

from ppcgc.emit.slot_code import SlotCode
from ppcgc.emit.source import Code, Identifier, call, code, dotted, identifier, literal, tuple_of
from ppcgc.ir import (
    Binding,
    BoundaryKey,
    BoundaryValue,
    HookValue,
    LiteralValue,
    PaddedValue,
    Place,
    ScalarValue,
    SlotValue,
    ViewValue,
)
from ppcgc.plan import RunnerPlan

NOTHING = Code("None")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordView:
    """A keyword of the forward: its type in the model's Protocol, and what it is given."""

    name: Identifier
    type: Code
    given: Code


def keywords_of(
    planned: RunnerPlan,
    place: Place,
    slots: list[SlotCode],
    view: Identifier,
    boundary: tuple[BoundaryKey, ...],
) -> tuple[KeywordView, ...]:
    """Every keyword that any place of the runner binds, as this place gives it."""
    forward = planned.runner.forward
    names = dict.fromkeys(
        b.keyword for p in Place if p in planned.runner.places for b in forward.at(p)
    )
    bound = {binding.keyword: binding for binding in forward.at(place)}
    own = {slot.slot.qualified: slot for slot in slots}
    return tuple(
        KeywordView(
            name=identifier(name),
            type=_type(bound.get(name), own, view, boundary),
            given=_given(bound.get(name), own),
        )
        for name in names
    )


def _given(binding: Binding | None, slots: dict[str, SlotCode]) -> Code:
    """What a keyword is given; None where the place does not bind it or lacks the slot."""
    if binding is None:
        return NOTHING
    match binding.value:
        case SlotValue(name=name):
            return code("slots.{}", dotted(tuple(name.split(".")))) if name in slots else NOTHING
        case BoundaryValue(key=None):
            return Code("boundary")
        case BoundaryValue(key=key):
            return code("boundary.{}", identifier(key or ""))
        case PaddedValue(axis=axis):
            return code("rows.{}", identifier(axis))
        case ScalarValue(name=name):
            return code("rows.{}", identifier(name))
        case HookValue(name=name):
            return code("made[{}]", literal(name))
        case ViewValue():
            return Code("slots")
        case LiteralValue(value=value):
            return literal(value)


def _type(
    binding: Binding | None,
    slots: dict[str, SlotCode],
    view: Identifier,
    boundary: tuple[BoundaryKey, ...],
) -> Code:
    if binding is None:
        return NOTHING
    match binding.value:
        case SlotValue(name=name):
            return slots[name].type() if name in slots else NOTHING
        case BoundaryValue(key=None):
            return Code("Boundary")
        case BoundaryValue(key=key):
            optional = any(entry.name == key and entry.when is not None for entry in boundary)
            return Code("Tensor | None" if optional else "Tensor")
        case PaddedValue() | ScalarValue():
            return Code("int")
        case HookValue():
            return Code("object")
        case ViewValue():
            return view
        case LiteralValue(value=value):
            return NOTHING if value is None else Code(type(value).__name__)


def keyword_names(keywords: tuple[KeywordView, ...]) -> Code:
    """``KEYWORDS = ("input_ids", ...)``."""
    names = tuple(literal(word.name.text) for word in keywords)
    if len(names) < 2:
        return code("KEYWORDS: tuple[str, ...] = {}", tuple_of(names))
    return call(Code("KEYWORDS = "), names)


def model_forward(keywords: tuple[KeywordView, ...]) -> Code:
    """The signature that the model's Protocol asks for."""
    parts = (
        Code("self"),
        *([Code("*")] if keywords else []),
        *(code("{}: {}", word.name, word.type) for word in keywords),
    )
    return call(Code("def forward"), parts, " -> object: ...")


def forward_call(keywords: tuple[KeywordView, ...]) -> Code:
    """``return self.model(input_ids=slots.input_ids, ...)``."""
    given = tuple(code("{}={}", word.name, word.given) for word in keywords)
    return call(Code("return self.model"), given)
