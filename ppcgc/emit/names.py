"""What things of a spec are called in generated code."""

from __future__ import annotations

from ppcgc.emit.source import Code, Identifier, code, identifier, literal
from ppcgc.expr.tree import Expr, Ref, Symbol
from ppcgc.expr.walk import refs
from ppcgc.ir import Extent, Family, KeepPadding, Place, Slot

PLACE_NAMES = {place: place.value.capitalize() for place in Place}


def camel(name: str) -> str:
    """``draft_extend`` -> ``DraftExtend``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def class_name(*parts: str) -> Identifier:
    """``("prefill", "first", "slots")`` -> ``PrefillFirstSlots``."""
    return identifier("".join(camel(part) for part in parts))


def dtype_code(dtype: str, model: str) -> Code:
    """``torch.int64``, or where the stage's own dtype is found."""
    return Code(model) if dtype == "model" else code("torch.{}", identifier(dtype))


def names_for(*exprs: Expr, dims: str, live: str, padded: str) -> dict[Ref, Code]:
    """Where the values of references are found: each word is the object that has them."""
    places = {Symbol.DIM: dims, Symbol.LIVE: live, Symbol.PADDED: padded}
    return {
        ref: Code(f"{places[ref.symbol]}.{identifier(ref.name)}")
        for expr in exprs
        for ref in refs(expr)
        if ref.symbol in places
    }


def fixed_numbers(family: Family) -> dict[Ref, Code]:
    """References whose value is known when code is generated: capacities."""
    return {Ref(Symbol.AXIS_MAX, axis.name): literal(axis.max) for axis in family.axes}


def slot_attribute(slot: Slot) -> Code:
    """The attribute path of a slot on its view: ``input_ids`` or ``pp.hidden_states``."""
    return identifier(slot.name) if slot.group is None else _grouped(slot)


def _grouped(slot: Slot) -> Code:
    return code("{}.{}", identifier(slot.group or ""), identifier(slot.name))


def flat_name(slot: Slot) -> Identifier:
    """A slot's name as one identifier: ``pp_hidden_states``. A rule keeps them apart."""
    return identifier(slot.name if slot.group is None else f"{slot.group}_{slot.name}")


def padded_dim(shape: tuple[Extent, ...]) -> int | None:
    """The dimension that carries an axis, None when no dimension does."""
    return next((dim for dim, extent in enumerate(shape) if extent.axis is not None), None)


def initial_value(slot: Slot) -> Code:
    """What a slot with one address holds before its first load."""
    return literal(slot.padding.initial) if isinstance(slot.padding, KeepPadding) else Code("0")
