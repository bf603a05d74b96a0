# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:70852ee30e9dd3150034fe106d7caef838dfd044e75bb01550f561b5abd47f24
"""outputs.by_index, only stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .by_index import ByIndexExtents, ByIndexOutputs, ByIndexResults, ByIndexSteps
from .by_index_slots import SLOTS
from .family import STAGES, Dims

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "use_cache", "mode", "limit", "extra")

OutT = TypeVar("OutT")


class ByIndexOnlyBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, spec.yaml:27


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ByIndexOnlySlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:27


class ByIndexOnlyModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        use_cache: bool,
        mode: str,
        limit: int,
        extra: None,
    ) -> object: ...


class ByIndexOnlyInputs(rt.Inputs[ByIndexExtents, ByIndexOnlyBatch, Dims, ByIndexOnlySlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: ByIndexExtents) -> dict[str, tuple[int, ...]]:
        return {"input_ids": (rows.tokens,)}

    def slots(self, of: Mapping[str, Tensor]) -> ByIndexOnlySlots:
        return ByIndexOnlySlots(input_ids=of["input_ids"])

    def load(
        self,
        slots: ByIndexOnlySlots,
        host: rt.BucketHost,
        batch: ByIndexOnlyBatch,
        live: ByIndexExtents,
        padded: ByIndexExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:27): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        host.push()

    def bind(
        self,
        batch: ByIndexOnlyBatch,
        boundary: None,
        live: ByIndexExtents,
    ) -> ByIndexOnlySlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return ByIndexOnlySlots(input_ids=rows.own("input_ids", batch.input_ids))


class _ByIndexOnly(
    ByIndexSteps,
    rt.EntryStage[ByIndexExtents, ByIndexOnlyBatch, Dims, ByIndexOnlySlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = ByIndexOnlyInputs

    def __init__(
        self,
        *,
        model: ByIndexOnlyModel,
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
        slots: ByIndexOnlySlots,
        boundary: None,
        rows: ByIndexExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            use_cache=False,
            mode="it's",
            limit=3,
            extra=None,
        )


class ByIndexOnly(_ByIndexOnly[ByIndexOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = ByIndexResults
