"""Hand-written views, as generated code declares them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ppcgc.runtime.views import Boundary, SlotView


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Slots(SlotView):
    input_ids: Tensor
    positions: Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Handed(Boundary):
    hidden_states: Tensor
    residual: Tensor
