"""What the tape needs to know of an ATen operation, read once from its schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch._ops import OpOverload

#: Operations that only take memory: at replay the memory is there, so nothing is run.
_ALLOCATES_ONLY = frozenset(
    f"aten::{name}"
    for name in (
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutVariant:
    """The overload that writes an operation's results into given tensors."""

    overload: OpOverload[..., object]
    out_names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The facts of one overload.

    ``written`` holds the positions and the names of the arguments that it writes.
    """

    name: str
    composite: bool
    metadata_only: bool
    allocates_only: bool
    collective: bool
    written: frozenset[int | str]
    out_variant: OutVariant | None


@cache
def traits_of(func: OpOverload[..., object]) -> Traits:
    schema = func._schema
    collective = func.namespace == "c10d" or func.namespace.startswith("_c10d_functional")
    return Traits(
        name=str(func),
        composite=_is_composite(func),
        metadata_only=torch.Tag.inplace_view in func.tags,
        allocates_only=schema.name in _ALLOCATES_ONLY,
        collective=collective,
        written=_written(func),
        out_variant=_out_variant(func) if func.namespace == "aten" else None,
    )


def _is_composite(func: OpOverload[..., object]) -> bool:
    """Whether the operation is only a composition of others.

    Outside inference mode torch takes these apart before a dispatch mode sees them. The tape
    does the same inside it, since an out= overload of a composition may take another path
    (``linear.out`` adds the bias in a second kernel) and give other bits.
    """
    schema = func._schema
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    key = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def _written(func: OpOverload[..., object]) -> frozenset[int | str]:
    found: set[int | str] = set()
    for position, argument in enumerate(func._schema.arguments):
        # the schemas of c10d do not say that they write into their tensors
        declared = argument.alias_info is not None and argument.alias_info.is_write
        if declared or func.namespace == "c10d":
            found |= {position, argument.name}
    return frozenset(found)


def _out_variant(func: OpOverload[..., object]) -> OutVariant | None:
    """The overload that takes the same inputs, by name and type, and gives the same results.

    Names of overloads are no guide: ``mul.Tensor`` has ``mul.out``, ``sum.dim_IntList`` has
    ``sum.IntList_out``.
    """
    if func._schema.is_mutable:
        return None
    wanted = [(a.name, str(a.type)) for a in func._schema.arguments]
    returned = [str(r.type) for r in func._schema.returns]
    packet = func.overloadpacket
    for overload in (getattr(packet, name) for name in packet.overloads()):
        arguments = overload._schema.arguments
        outs = [a for a in arguments if a.is_out]
        inputs = [(a.name, str(a.type)) for a in arguments if not a.is_out]
        fits = inputs == wanted and [str(a.type) for a in outs] == returned
        if outs and fits and _only_tensors(returned):
            return OutVariant(overload=overload, out_names=tuple(a.name for a in outs))
    return None


def _only_tensors(types: Sequence[str]) -> bool:
    return all(kind == "Tensor" for kind in types)
