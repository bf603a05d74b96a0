# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:773d23123ee19b4d0c25b8148f026260d49d8f4589778d9b1fbb360cba4c318c
"""rows_live.step, only and first stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims
from .step import StepExtents, StepOutputs, StepResults, StepSteps
from .step_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("batch", "hidden_states")

OutT = TypeVar("OutT")


class StepFirstBatchMm(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def grid(self) -> Tensor: ...  # [2, images] int32, spec.yaml:17


class StepFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:16
    @property
    def mm(self) -> StepFirstBatchMm: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:16
    grid: Tensor  # [2, images] int32, spec.yaml:17


class StepFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: StepFirstSlots, hidden_states: None) -> object: ...


class StepFirstInputs(rt.Inputs[StepExtents, StepFirstBatch, Dims, StepFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,), "grid": (2, rows.images)}

    def slots(self, of: Mapping[str, Tensor]) -> StepFirstSlots:
        return StepFirstSlots(input_ids=of["input_ids"], grid=of["grid"])

    def load(
        self,
        slots: StepFirstSlots,
        host: rt.BucketHost,
        batch: StepFirstBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, input_ids_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:16): batch.input_ids, then zero
        input_ids_rows.put(batch.input_ids, live.tokens)
        # grid (spec.yaml:17): batch.mm.grid, then zero
        rt.copy_rows(
            slots.grid,
            None if batch.mm is None else batch.mm.grid,
            live.images,
            "grid",
            dim=1,
        )
        rt.pad_zero(slots.grid, live.images, dim=1)
        host.push()

    def bind(self, batch: StepFirstBatch, boundary: None, live: StepExtents) -> StepFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepFirstSlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            grid=rows.own("grid", None if batch.mm is None else batch.mm.grid),
        )


class _StepFirst(StepSteps, rt.EntryStage[StepExtents, StepFirstBatch, Dims, StepFirstSlots, OutT]):
    """What the places of this kind share."""

    inputs_type = StepFirstInputs

    def __init__(
        self,
        *,
        model: StepFirstModel,
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
        slots: StepFirstSlots,
        boundary: None,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(batch=slots, hidden_states=None)


class StepOnly(_StepFirst[StepOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = StepResults


class StepFirst(_StepFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
