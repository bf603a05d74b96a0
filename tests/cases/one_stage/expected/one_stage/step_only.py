# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:740bc790888aacc66747fbb88bbd813989e7e5e4aa888ea10c37331d7d662819
"""one_stage.step, only stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import STAGES, Dims
from .step import StepExtents, StepOutputs, StepResults, StepSteps
from .step_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS: tuple[str, ...] = ("input_ids",)

OutT = TypeVar("OutT")


class StepOnlyBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, spec.yaml:13


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepOnlySlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:13


class StepOnlyModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, input_ids: Tensor) -> object: ...


class StepOnlyInputs(rt.Inputs[StepExtents, StepOnlyBatch, Dims, StepOnlySlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,)}

    def slots(self, of: Mapping[str, Tensor]) -> StepOnlySlots:
        return StepOnlySlots(input_ids=of["input_ids"])

    def load(
        self,
        slots: StepOnlySlots,
        host: rt.BucketHost,
        batch: StepOnlyBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:13): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        host.push()

    def bind(self, batch: StepOnlyBatch, boundary: None, live: StepExtents) -> StepOnlySlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepOnlySlots(input_ids=rows.own("input_ids", batch.input_ids))


class _StepOnly(StepSteps, rt.EntryStage[StepExtents, StepOnlyBatch, Dims, StepOnlySlots, OutT]):
    """What the places of this kind share."""

    inputs_type = StepOnlyInputs

    def __init__(
        self,
        *,
        model: StepOnlyModel,
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
        slots: StepOnlySlots,
        boundary: None,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=slots.input_ids)


class StepOnly(_StepOnly[StepOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = StepResults
