# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:fb314e7ac1734b7f023d3edafa499a58d619deba71d9bc12e4aba1132bc41c89
"""explicit_ranges.step, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import STAGES, Dims
from .step import StepExtents, StepOutputs, StepResults, StepSteps
from .step_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "hidden_states")

OutT = TypeVar("OutT")


class StepLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, spec.yaml:17


class StepLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, input_ids: None, positions: Tensor, hidden_states: Tensor) -> object: ...


class StepLaterInputs(rt.Inputs[StepExtents, StepLaterBatch, Dims, StepLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "positions")

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {"positions": (rows.tokens,)}

    def slots(self, of: Mapping[str, Tensor]) -> StepLaterSlots:
        return StepLaterSlots(positions=of["positions"])

    def load(
        self,
        slots: StepLaterSlots,
        host: rt.BucketHost,
        batch: StepLaterBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, positions_rows = host.begin()
        counts.set_rows(live)
        # positions (spec.yaml:17): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        host.push()

    def bind(self, batch: StepLaterBatch, boundary: Boundary, live: StepExtents) -> StepLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepLaterSlots(positions=rows.upload("positions", batch.positions))


class _StepLater(
    StepSteps,
    rt.LaterStage[StepExtents, StepLaterBatch, Dims, StepLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = StepLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: StepLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        dtype: torch.dtype,
        backend: rt.Backend,
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims))
        rt.check_declared(layers, STAGES)
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def forward(
        self,
        slots: StepLaterSlots,
        boundary: Boundary,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=None,
            positions=slots.positions,
            hidden_states=boundary.hidden_states,
        )


class StepMiddle(_StepLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class StepLast(_StepLater[StepOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = StepResults
