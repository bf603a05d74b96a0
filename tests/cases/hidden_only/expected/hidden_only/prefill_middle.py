# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""hidden_only.prefill, middle stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims
from .prefill import PrefillExtents, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillMiddleBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillMiddleSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""


class PrefillMiddleModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: PrefillMiddleSlots,
        inputs_embeds: Tensor,
    ) -> object: ...


class PrefillMiddleInputs(rt.Inputs[PrefillExtents, PrefillMiddleBatch, Dims, PrefillMiddleSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS)

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {}

    def slots(self, of: Mapping[str, Tensor]) -> PrefillMiddleSlots:
        return PrefillMiddleSlots()

    def load(
        self,
        slots: PrefillMiddleSlots,
        host: rt.BucketHost,
        batch: PrefillMiddleBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        host.push()

    def bind(
        self,
        batch: PrefillMiddleBatch,
        boundary: Boundary,
        live: PrefillExtents,
    ) -> PrefillMiddleSlots:
        return PrefillMiddleSlots()


class _PrefillMiddle(
    PrefillSteps,
    rt.LaterStage[PrefillExtents, PrefillMiddleBatch, Dims, PrefillMiddleSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillMiddleInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillMiddleModel,
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
        slots: PrefillMiddleSlots,
        boundary: Boundary,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=None, batch=slots, inputs_embeds=boundary.hidden_states)


class PrefillMiddle(_PrefillMiddle[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn
