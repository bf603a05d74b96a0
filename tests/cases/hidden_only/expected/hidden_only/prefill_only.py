# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""hidden_only.prefill, only stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillOnlyBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:21
    @property
    def last_token(self) -> rt.HostSource: ...  # [requests] int64, spec.yaml:22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillOnlySlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:21
    last_token: Tensor  # [requests] int64, spec.yaml:22


class PrefillOnlyModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        batch: PrefillOnlySlots,
        inputs_embeds: None,
    ) -> object: ...


class PrefillOnlyInputs(rt.Inputs[PrefillExtents, PrefillOnlyBatch, Dims, PrefillOnlySlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,), "last_token": (rows.requests,)}

    def slots(self, of: Mapping[str, Tensor]) -> PrefillOnlySlots:
        return PrefillOnlySlots(input_ids=of["input_ids"], last_token=of["last_token"])

    def load(
        self,
        slots: PrefillOnlySlots,
        host: rt.BucketHost,
        batch: PrefillOnlyBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, input_ids_rows, last_token_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:21): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        input_ids_rows.check_index(live.tokens, self.dims.vocab)
        # last_token (spec.yaml:22): batch.last_token, then zero
        last_token_rows.put(batch.last_token, live.requests)
        last_token_rows.check_index(live.requests, live.tokens)
        host.push()

    def bind(
        self,
        batch: PrefillOnlyBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillOnlySlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillOnlySlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            last_token=rows.upload("last_token", batch.last_token),
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("last_token", live.tokens)
        return slots


class _PrefillOnly(
    PrefillSteps,
    rt.EntryStage[PrefillExtents, PrefillOnlyBatch, Dims, PrefillOnlySlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillOnlyInputs

    def __init__(
        self,
        *,
        model: PrefillOnlyModel,
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
        slots: PrefillOnlySlots,
        boundary: None,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=slots.input_ids, batch=slots, inputs_embeds=None)


class PrefillOnly(_PrefillOnly[PrefillOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = PrefillResults
