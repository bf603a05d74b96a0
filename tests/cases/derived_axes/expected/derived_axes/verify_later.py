# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:3c5989f596772bebbe05153ede4982a22e3a42d6bc42f272be8dc574803c1086
"""derived_axes.verify, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims
from .verify import VerifyExtents, VerifyOutputs, VerifyResults, VerifySteps
from .verify_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "batch", "hidden_states")

OutT = TypeVar("OutT")


class VerifyLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def num_pages(self) -> int: ...  # live pages
    @property
    def lengths(self) -> rt.HostSource: ...  # [requests] int32, spec.yaml:21
    @property
    def table(self) -> rt.HostSource: ...  # [pages] int32, spec.yaml:22
    @property
    def half(self) -> Tensor: ...  # [halves] int32, spec.yaml:23


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class VerifyLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    lengths: Tensor  # [requests] int32, spec.yaml:21
    table: Tensor  # [pages] int32, spec.yaml:22
    half: Tensor  # [halves] int32, spec.yaml:23


class VerifyLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: VerifyLaterSlots,
        hidden_states: Tensor,
    ) -> object: ...


class VerifyLaterInputs(rt.Inputs[VerifyExtents, VerifyLaterBatch, Dims, VerifyLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "lengths", "table", "half")

    def shapes(self, rows: VerifyExtents) -> dict[str, tuple[int, ...]]:
        return {"lengths": (rows.requests,), "table": (rows.pages,), "half": (rows.halves,)}

    def slots(self, of: Mapping[str, Tensor]) -> VerifyLaterSlots:
        return VerifyLaterSlots(lengths=of["lengths"], table=of["table"], half=of["half"])

    def load(
        self,
        slots: VerifyLaterSlots,
        host: rt.BucketHost,
        batch: VerifyLaterBatch,
        live: VerifyExtents,
        padded: VerifyExtents,
    ) -> None:
        counts, lengths_rows, table_rows = host.begin()
        counts.set_rows(live)
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
        batch: VerifyLaterBatch,
        boundary: Boundary,
        live: VerifyExtents,
    ) -> VerifyLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return VerifyLaterSlots(
            lengths=rows.upload("lengths", batch.lengths),
            table=rows.upload("table", batch.table),
            half=rows.own("half", batch.half),
        )


class _VerifyLater(
    VerifySteps,
    rt.LaterStage[VerifyExtents, VerifyLaterBatch, Dims, VerifyLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = VerifyLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: VerifyLaterModel,
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
        slots: VerifyLaterSlots,
        boundary: Boundary,
        rows: VerifyExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=None, batch=slots, hidden_states=boundary.hidden_states)


class VerifyMiddle(_VerifyLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class VerifyLast(_VerifyLater[VerifyOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = VerifyResults
