# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:a0396ae931ba4cce559a947cd6dcde5f2b610ae5ff0866f3c7e71c297c212ec3
"""sources.step, middle and last stages: slots, how a batch fills them, runners."""

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
KEYWORDS: tuple[str, ...] = ("batch",)

OutT = TypeVar("OutT")


class StepLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def host(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:16
    @property
    def on_device(self) -> Tensor: ...  # [tokens] float32, spec.yaml:15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    on_device: Tensor  # [tokens] float32, spec.yaml:15
    host: Tensor  # [tokens] int64, spec.yaml:16
    narrowed: Tensor  # [tokens] int32, spec.yaml:17
    received: Tensor  # [tokens, hidden] model, spec.yaml:18
    block_number: Tensor  # [tokens] int32, spec.yaml:19
    waste: Tensor  # [1] int32, spec.yaml:20
    is_full: Tensor  # [1] bool, spec.yaml:21
    scale: Tensor  # [tokens] float32, spec.yaml:22
    drafted: Tensor  # [tokens] int64, spec.yaml:23
    scratch: Tensor  # [tokens, hidden] float32, spec.yaml:24


class StepLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: StepLaterSlots) -> object: ...


class StepLaterInputs(rt.Inputs[StepExtents, StepLaterBatch, Dims, StepLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "on_device": (rows.tokens,),
            "host": (rows.tokens,),
            "narrowed": (rows.tokens,),
            "received": (rows.tokens, self.dims.hidden),
            "block_number": (rows.tokens,),
            "waste": (1,),
            "is_full": (1,),
            "scale": (rows.tokens,),
            "drafted": (rows.tokens,),
            "scratch": (rows.tokens, self.dims.hidden),
        }

    def initials(self) -> dict[str, float]:
        return {"scale": 0.25}

    def slots(self, of: Mapping[str, Tensor]) -> StepLaterSlots:
        return StepLaterSlots(
            on_device=of["on_device"],
            host=of["host"],
            narrowed=of["narrowed"],
            received=of["received"],
            block_number=of["block_number"],
            waste=of["waste"],
            is_full=of["is_full"],
            scale=of["scale"],
            drafted=of["drafted"],
            scratch=of["scratch"],
        )

    def load(
        self,
        slots: StepLaterSlots,
        host: rt.BucketHost,
        batch: StepLaterBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, host_rows, narrowed_rows, block_number_rows, waste_rows, is_full_rows = host.begin()
        counts.set_rows(live)
        # on_device (spec.yaml:15): batch.on_device, then zero
        host.move_rows(slots.on_device, batch.on_device, live.tokens, "on_device", 0)
        # host (spec.yaml:16): batch.host, then zero
        host_rows.put(batch.host, live.tokens)
        # narrowed (spec.yaml:17): batch.host, then zero
        narrowed_rows.put(batch.host, live.tokens, cast=True)
        # block_number (spec.yaml:19): computed for every padded row
        block_number_rows.set_rows(
            [rt.floor_div(row, self.dims.block) for row in range(padded.tokens)],
        )
        # waste (spec.yaml:20): computed for every padded row
        waste_rows.set_all(padded.tokens - live.tokens)
        # is_full (spec.yaml:21): computed for every padded row
        is_full_rows.set_all(live.tokens == padded.tokens)
        # drafted (spec.yaml:23): live rows are zero until the caller writes them
        rt.fill_live(slots.drafted, live.tokens, 0)
        rt.pad_fill(slots.drafted, live.tokens, 9)
        host.push()

    def pad_late(self, slots: StepLaterSlots, live: StepExtents, padded: StepExtents) -> None:
        # drafted (spec.yaml:23): written by the caller before finish(), then its fill
        rt.pad_fill(slots.drafted, live.tokens, 9)

    def bind(self, batch: StepLaterBatch, boundary: Boundary, live: StepExtents) -> StepLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepLaterSlots(
            on_device=rows.own("on_device", batch.on_device),
            host=rows.upload("host", batch.host),
            narrowed=rows.upload("narrowed", batch.host, cast=True),
            received=boundary.hidden_states,
            block_number=rows.computed(
                "block_number",
                [rt.floor_div(row, self.dims.block) for row in range(live.tokens)],
            ),
            waste=rows.filled("waste", live.tokens - live.tokens),
            is_full=rows.filled("is_full", live.tokens == live.tokens),
            scale=rows.filled("scale", 0.25),
            drafted=rows.filled("drafted", 0),
            scratch=rows.filled("scratch", 0),
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
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def forward(
        self,
        slots: StepLaterSlots,
        boundary: Boundary,
        rows: StepExtents,
        made: rt.Made,
    ) -> object:
        return self.model(batch=slots)


class StepMiddle(_StepLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class StepLast(_StepLater[StepOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = StepResults
