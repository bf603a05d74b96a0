# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""derived_axes.verify, only and first stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims
from .verify import VerifyExtents, VerifyOutputs, VerifyResults, VerifySteps
from .verify_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "hidden_states")

OutT = TypeVar("OutT")


class VerifyFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:20
    @property
    def lengths(self) -> rt.HostSource: ...  # [requests] int32, spec.yaml:21
    @property
    def table(self) -> rt.HostSource: ...  # [pages] int32, spec.yaml:22
    @property
    def half(self) -> Tensor: ...  # [halves] int32, spec.yaml:23


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VerifyFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:20
    lengths: Tensor  # [requests] int32, spec.yaml:21
    table: Tensor  # [pages] int32, spec.yaml:22
    half: Tensor  # [halves] int32, spec.yaml:23


class VerifyFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        batch: VerifyFirstSlots,
        hidden_states: None,
    ) -> object: ...


class VerifyFirstInputs(rt.Inputs[VerifyExtents, VerifyFirstBatch, Dims, VerifyFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: VerifyExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "lengths": (rows.requests,),
            "table": (rows.pages,),
            "half": (rows.halves,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> VerifyFirstSlots:
        return VerifyFirstSlots(
            input_ids=of["input_ids"],
            lengths=of["lengths"],
            table=of["table"],
            half=of["half"],
        )

    def load(
        self,
        slots: VerifyFirstSlots,
        host: rt.BucketHost,
        batch: VerifyFirstBatch,
        live: VerifyExtents,
        padded: VerifyExtents,
    ) -> None:
        counts, input_ids_rows, lengths_rows, table_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:20): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        # lengths (spec.yaml:21): batch.lengths, then its fill
        lengths_rows.put(batch.lengths, live.requests)
        lengths_rows.pad_fill(live.requests, 1 if live.requests > 2 else 0)
        # table (spec.yaml:22): batch.table, then zero
        table_rows.put(batch.table, live.pages)
        # half (spec.yaml:23): batch.half, then zero
        host.move_rows(slots.half, batch.half, live.halves, "half", 0)
        host.push()

    def bind(
        self,
        batch: VerifyFirstBatch,
        boundary: None,
        live: VerifyExtents,
    ) -> VerifyFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return VerifyFirstSlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            lengths=rows.upload("lengths", batch.lengths),
            table=rows.upload("table", batch.table),
            half=rows.own("half", batch.half),
        )


class _VerifyFirst(
    VerifySteps,
    rt.EntryStage[VerifyExtents, VerifyFirstBatch, Dims, VerifyFirstSlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = VerifyFirstInputs

    def __init__(
        self,
        *,
        model: VerifyFirstModel,
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
        slots: VerifyFirstSlots,
        boundary: None,
        rows: VerifyExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=slots.input_ids, batch=slots, hidden_states=None)


class VerifyOnly(_VerifyFirst[VerifyOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = VerifyResults


class VerifyFirst(_VerifyFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
