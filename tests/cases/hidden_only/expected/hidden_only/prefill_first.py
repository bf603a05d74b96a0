# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:273ac02076b5384be9554b57455730d885074abf805b9f2da54729d17f2ca3a9
"""hidden_only.prefill, first stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims
from .prefill import PrefillExtents, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:21


class PrefillFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        batch: PrefillFirstSlots,
        inputs_embeds: None,
    ) -> object: ...


class PrefillFirstInputs(rt.Inputs[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "input_ids")

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,)}

    def slots(self, of: Mapping[str, Tensor]) -> PrefillFirstSlots:
        return PrefillFirstSlots(input_ids=of["input_ids"])

    def load(
        self,
        slots: PrefillFirstSlots,
        host: rt.BucketHost,
        batch: PrefillFirstBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, input_ids_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:21): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        input_ids_rows.check_index(live.tokens, self.dims.vocab)
        host.push()

    def bind(
        self,
        batch: PrefillFirstBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillFirstSlots(input_ids=rows.upload("input_ids", batch.input_ids))
        rows.check_index("input_ids", self.dims.vocab)
        return slots


class _PrefillFirst(
    PrefillSteps,
    rt.EntryStage[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillFirstInputs

    def __init__(
        self,
        *,
        model: PrefillFirstModel,
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
        slots: PrefillFirstSlots,
        boundary: None,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=slots.input_ids, batch=slots, inputs_embeds=None)


class PrefillFirst(_PrefillFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
