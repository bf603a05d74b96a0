# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""hidden_only.prefill, last stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, Received
from .family import Dims
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillLastBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def last_token(self) -> rt.HostSource: ...  # [requests] int64, spec.yaml:22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillLastSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    last_token: Tensor  # [requests] int64, spec.yaml:22


class PrefillLastModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: PrefillLastSlots,
        inputs_embeds: Tensor,
    ) -> object: ...


class PrefillLastInputs(rt.Inputs[PrefillExtents, PrefillLastBatch, Dims, PrefillLastSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "last_token")

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {"last_token": (rows.requests,)}

    def slots(self, of: Mapping[str, Tensor]) -> PrefillLastSlots:
        return PrefillLastSlots(last_token=of["last_token"])

    def load(
        self,
        slots: PrefillLastSlots,
        host: rt.BucketHost,
        batch: PrefillLastBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, last_token_rows = host.begin()
        counts.set_rows(live)
        # last_token (spec.yaml:22): batch.last_token, then zero
        last_token_rows.put(batch.last_token, live.requests)
        last_token_rows.check_index(live.requests, live.tokens)
        host.push()

    def bind(
        self,
        batch: PrefillLastBatch,
        boundary: Boundary,
        live: PrefillExtents,
    ) -> PrefillLastSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillLastSlots(last_token=rows.upload("last_token", batch.last_token))
        rows.check_index("last_token", live.tokens)
        return slots


class _PrefillLast(
    PrefillSteps,
    rt.LaterStage[PrefillExtents, PrefillLastBatch, Dims, PrefillLastSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillLastInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillLastModel,
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
        slots: PrefillLastSlots,
        boundary: Boundary,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=None, batch=slots, inputs_embeds=boundary.hidden_states)


class PrefillLast(_PrefillLast[PrefillOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillResults
