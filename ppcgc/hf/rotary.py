"""Rotary embeddings that change with the longest request of a batch, and how far they stand still.

# Note [held frequencies]
`dynamic` makes new frequencies once a position goes past the original length, for all rows of the
batch and from then on. It asks on the host whether one does, which no graph can. Up to that length
they never change, so a stage keeps the ones it begins with, and longer requests are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from ppcgc.runtime.errors import BuildError

# what the modules of a family are told that they have: any word that they do not know
_HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeLimit:
    """Positions up to which requests of one batch leave each other's rotations alone."""

    kind: str
    positions: int


def rope_limit(config: Any) -> RopeLimit | None:
    """How far requests may go; None where the family has no such limit.

    `longrope` has two sets of factors and takes one for all rows, by the largest position of the
    batch. `dynamic`: see Note [held frequencies].
    """
    text = config.get_text_config()
    given = getattr(text, "rope_parameters", None) or {}
    for rope in [given, *(one for one in given.values() if isinstance(one, Mapping))]:
        kind = rope.get("rope_type")
        if kind == "longrope":
            known = rope.get("original_max_position_embeddings")
            known = known or getattr(text, "original_max_position_embeddings", None)
            return RopeLimit(kind=kind, positions=int(known or text.max_position_embeddings))
        if kind == "dynamic":
            return RopeLimit(kind=kind, positions=int(text.max_position_embeddings))
    return None


def check_positions(config: Any, longest: int | None) -> None:
    """Raises BuildError where requests of ``longest`` positions would change their neighbours."""
    limit = rope_limit(config)
    if limit is None:
        return
    most = config.get_text_config().max_position_embeddings if longest is None else longest
    if most > limit.positions:
        raise BuildError(
            f"{config.model_type}: {limit.kind} rotates a whole batch by its longest request, so a "
            f"request past {limit.positions} positions changes those packed beside it; up to "
            f"{most} are to be served. Say longest={limit.positions} or less, and let no request "
            "grow past that"
        )


def hold_frequencies(model: Any) -> None:
    """Give `dynamic` rotations of ``model`` the frequencies that they begin with, for good.

    Raises BuildError where the family does not keep those.
    """
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if kinds == "dynamic":
            _begin(module, "")
            module.rope_type = _HELD
        elif isinstance(kinds, Mapping):  # by the kind of layer
            for layers in [name for name, kind in kinds.items() if kind == "dynamic"]:
                _begin(module, f"{layers}_")
            module.rope_type = {n: _HELD if k == "dynamic" else k for n, k in kinds.items()}


def _begin(module: nn.Module, prefix: str) -> None:
    original = module._buffers.get(f"{prefix}original_inv_freq")
    if original is None:
        raise BuildError(
            f"{type(module).__name__}: its rotations are dynamic and it has no buffer "
            f"{prefix}original_inv_freq to hold them by; the family cannot be a stage"
        )
    setattr(module, f"{prefix}inv_freq", original.clone())
