# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""derived_axes.prefill, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "hidden_states")

OutT = TypeVar("OutT")


class PrefillLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def half(self) -> Tensor: ...  # [halves] int32, spec.yaml:33


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    half: Tensor  # [halves] int32, spec.yaml:33


class PrefillLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: PrefillLaterSlots,
        hidden_states: Tensor,
    ) -> object: ...


class PrefillLaterInputs(rt.Inputs[PrefillExtents, PrefillLaterBatch, Dims, PrefillLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "half")

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {"half": (rows.halves,)}

    def slots(self, of: Mapping[str, Tensor]) -> PrefillLaterSlots:
        return PrefillLaterSlots(half=of["half"])

    def load(
        self,
        slots: PrefillLaterSlots,
        host: rt.BucketHost,
        batch: PrefillLaterBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        # half (spec.yaml:33): batch.half, then zero
        host.move_rows(slots.half, batch.half, live.halves, "half", 0)
        host.push()

    def bind(
        self,
        batch: PrefillLaterBatch,
        boundary: Boundary,
        live: PrefillExtents,
    ) -> PrefillLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return PrefillLaterSlots(half=rows.own("half", batch.half))


class _PrefillLater(
    PrefillSteps,
    rt.LaterStage[PrefillExtents, PrefillLaterBatch, Dims, PrefillLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        dtype: torch.dtype,
        backend: rt.Backend,
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims))
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def forward(
        self,
        slots: PrefillLaterSlots,
        boundary: Boundary,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=None, batch=slots, hidden_states=boundary.hidden_states)


class PrefillMiddle(_PrefillLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class PrefillLast(_PrefillLater[PrefillOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillResults
