"""What things of a spec are called in generated code."""

from __future__ import annotations

from ppcgc.emit.source import Code, Identifier, code, identifier
from ppcgc.ir import Slot
from ppcgc.plan.naming import camel


def class_name(*parts: str) -> Identifier:
    """``("prefill", "first", "slots")`` -> ``PrefillFirstSlots``."""
    return identifier("".join(camel(part) for part in parts))


def dtype_code(dtype: str, model: str) -> Code:
    """``torch.int64``, or where the stage's own dtype is found."""
    return Code(model) if dtype == "model" else code("torch.{}", identifier(dtype))


def slot_attribute(slot: Slot) -> Code:
    """The attribute path of a slot on its view: ``input_ids`` or ``pp.hidden_states``."""
    return identifier(slot.name) if slot.group is None else _grouped(slot)


def _grouped(slot: Slot) -> Code:
    return code("{}.{}", identifier(slot.group or ""), identifier(slot.name))


def flat_name(slot: Slot) -> Identifier:
    """A slot's name as one identifier: ``pp_hidden_states``. A rule keeps them apart."""
    return identifier(slot.name if slot.group is None else f"{slot.group}_{slot.name}")
