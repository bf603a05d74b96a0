# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:60d459386d8bcb3f35623106fbaeb1751445f3d616ea8c6f033a1bf3df210b40
"""groups.step, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims
from .step import StepExtents, StepOutputs, StepResults, StepSteps
from .step_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "hidden_states")

OutT = TypeVar("OutT")


class StepLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:16
    @property
    def draft(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:17
    @property
    def mask(self) -> Tensor: ...  # [tokens] bool, spec.yaml:19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterAttnSlots(rt.SlotView):
    """The group attn of the slots."""

    positions: Tensor  # [tokens] int64, spec.yaml:16
    window: Tensor  # [1] int32, spec.yaml:18
    mask: Tensor  # [tokens] bool, spec.yaml:19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSpecSlots(rt.SlotView):
    """The group spec of the slots."""

    draft: Tensor  # [tokens] int64, spec.yaml:17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    attn: StepLaterAttnSlots  # a group
    spec: StepLaterSpecSlots  # a group


class StepLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        positions: Tensor,
        batch: StepLaterSlots,
        hidden_states: Tensor,
    ) -> object: ...


class StepLaterInputs(rt.Inputs[StepExtents, StepLaterBatch, Dims, StepLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "attn.positions", "spec.draft", "attn.window", "attn.mask")

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "attn.positions": (rows.tokens,),
            "spec.draft": (rows.tokens,),
            "attn.window": (1,),
            "attn.mask": (rows.tokens,),
        }

    def initials(self) -> dict[str, float]:
        return {"attn.window": self.dims.hidden * 2}

    def slots(self, of: Mapping[str, Tensor]) -> StepLaterSlots:
        return StepLaterSlots(
            attn=StepLaterAttnSlots(
                positions=of["attn.positions"],
                window=of["attn.window"],
                mask=of["attn.mask"],
            ),
            spec=StepLaterSpecSlots(draft=of["spec.draft"]),
        )

    def load(
        self,
        slots: StepLaterSlots,
        host: rt.BucketHost,
        batch: StepLaterBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, attn_positions_rows, spec_draft_rows = host.begin()
        counts.set_rows(live)
        # attn.positions (spec.yaml:16): batch.positions, then zero
        attn_positions_rows.put(batch.positions, live.tokens)
        # spec.draft (spec.yaml:17): batch.draft, then zero
        spec_draft_rows.put(batch.draft, live.tokens)
        # attn.mask (spec.yaml:19): batch.mask, then its fill
        host.move_rows(slots.attn.mask, batch.mask, live.tokens, "attn.mask", False)
        host.push()

    def bind(self, batch: StepLaterBatch, boundary: Boundary, live: StepExtents) -> StepLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepLaterSlots(
            attn=StepLaterAttnSlots(
                positions=rows.upload("attn.positions", batch.positions),
                window=rows.filled("attn.window", self.dims.hidden * 2),
                mask=rows.own("attn.mask", batch.mask),
            ),
            spec=StepLaterSpecSlots(draft=rows.upload("spec.draft", batch.draft)),
        )


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
        rt.check_value("attn.window", dims.hidden * 2, torch.int32, "spec.yaml:18")
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
            positions=slots.attn.positions,
            batch=slots,
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
