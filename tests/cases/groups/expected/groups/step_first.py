# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""groups.step, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "hidden_states")

OutT = TypeVar("OutT")


class StepFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, spec.yaml:15
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:16
    @property
    def draft(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:17
    @property
    def mask(self) -> Tensor: ...  # [tokens] bool, spec.yaml:19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepFirstAttnSlots(rt.SlotView):
    """The group attn of the slots."""

    positions: Tensor  # [tokens] int64, spec.yaml:16
    window: Tensor  # [1] int32, spec.yaml:18
    mask: Tensor  # [tokens] bool, spec.yaml:19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepFirstSpecSlots(rt.SlotView):
    """The group spec of the slots."""

    draft: Tensor  # [tokens] int64, spec.yaml:17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    # The ids of the tokens.
    input_ids: Tensor  # [tokens] int64, spec.yaml:15
    attn: StepFirstAttnSlots  # a group
    spec: StepFirstSpecSlots  # a group


class StepFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: StepFirstSlots,
        hidden_states: None,
    ) -> object: ...


class StepFirstInputs(rt.Inputs[StepExtents, StepFirstBatch, Dims, StepFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "attn.positions": (rows.tokens,),
            "spec.draft": (rows.tokens,),
            "attn.window": (1,),
            "attn.mask": (rows.tokens,),
        }

    def initials(self) -> dict[str, float]:
        return {"attn.window": self.dims.hidden * 2}

    def slots(self, of: Mapping[str, Tensor]) -> StepFirstSlots:
        return StepFirstSlots(
            input_ids=of["input_ids"],
            attn=StepFirstAttnSlots(
                positions=of["attn.positions"],
                window=of["attn.window"],
                mask=of["attn.mask"],
            ),
            spec=StepFirstSpecSlots(draft=of["spec.draft"]),
        )

    def load(
        self,
        slots: StepFirstSlots,
        host: rt.BucketHost,
        batch: StepFirstBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, attn_positions_rows, spec_draft_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:15): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        # attn.positions (spec.yaml:16): batch.positions, then zero
        attn_positions_rows.put(batch.positions, live.tokens)
        # spec.draft (spec.yaml:17): batch.draft, then zero
        spec_draft_rows.put(batch.draft, live.tokens)
        # attn.mask (spec.yaml:19): batch.mask, then its fill
        host.move_rows(slots.attn.mask, batch.mask, live.tokens, "attn.mask", False)
        host.push()

    def bind(self, batch: StepFirstBatch, boundary: None, live: StepExtents) -> StepFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepFirstSlots(
            input_ids=rows.own("input_ids", batch.input_ids),
            attn=StepFirstAttnSlots(
                positions=rows.upload("attn.positions", batch.positions),
                window=rows.filled("attn.window", self.dims.hidden * 2),
                mask=rows.own("attn.mask", batch.mask),
            ),
            spec=StepFirstSpecSlots(draft=rows.upload("spec.draft", batch.draft)),
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
        rt.check_value("attn.window", dims.hidden * 2, torch.int32, "spec.yaml:18")
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def forward(
        self,
        slots: StepFirstSlots,
        boundary: None,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            positions=slots.attn.positions,
            batch=slots,
            hidden_states=None,
        )


class StepOnly(_StepFirst[StepOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = StepResults


class StepFirst(_StepFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
