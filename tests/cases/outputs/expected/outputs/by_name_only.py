# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""outputs.by_name, only stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .by_name import ByNameExtents, ByNameOutputs, ByNameResults, ByNameSteps
from .by_name_slots import SLOTS
from .family import STAGES, Dims

# what the forward is given, always by keyword
KEYWORDS: tuple[str, ...] = ("input_ids",)

OutT = TypeVar("OutT")


class ByNameOnlyBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, spec.yaml:15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ByNameOnlySlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:15


class ByNameOnlyModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, input_ids: Tensor) -> object: ...


class ByNameOnlyInputs(rt.Inputs[ByNameExtents, ByNameOnlyBatch, Dims, ByNameOnlySlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: ByNameExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,)}

    def slots(self, of: Mapping[str, Tensor]) -> ByNameOnlySlots:
        return ByNameOnlySlots(input_ids=of["input_ids"])

    def load(
        self,
        slots: ByNameOnlySlots,
        host: rt.BucketHost,
        batch: ByNameOnlyBatch,
        live: ByNameExtents,
        padded: ByNameExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:15): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        host.push()

    def bind(self, batch: ByNameOnlyBatch, boundary: None, live: ByNameExtents) -> ByNameOnlySlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return ByNameOnlySlots(input_ids=rows.own("input_ids", batch.input_ids))


class _ByNameOnly(
    ByNameSteps,
    rt.EntryStage[ByNameExtents, ByNameOnlyBatch, Dims, ByNameOnlySlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = ByNameOnlyInputs

    def __init__(
        self,
        *,
        model: ByNameOnlyModel,
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
        slots: ByNameOnlySlots,
        boundary: None,
        rows: ByNameExtents,
        made: rt.Made,
    ) -> object:
        return self.model(input_ids=slots.input_ids)


class ByNameOnly(_ByNameOnly[ByNameOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = ByNameResults
