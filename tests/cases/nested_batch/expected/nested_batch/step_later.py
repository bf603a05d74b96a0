# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:189a31b95294779ea8cb21a47bf0f77c1efe7d5be97a228617b6ed2428e9ac79
"""nested_batch.step, middle and last stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "batch", "lora", "hidden_states")

OutT = TypeVar("OutT")


class StepLaterBatchCounts(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def tokens(self) -> int: ...  # live tokens


class StepLaterBatchMmCounts(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def images(self) -> int: ...  # live images


class StepLaterBatchMm(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def counts(self) -> StepLaterBatchMmCounts: ...
    @property
    def grid(self) -> Tensor: ...  # [images, 3] int64, spec.yaml:20


class StepLaterBatchSpecInfo(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def bias(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:17


class StepLaterBatchSpec(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def info(self) -> StepLaterBatchSpecInfo | None: ...
    @property
    def scale(self) -> Tensor | None: ...  # [tokens] float32, spec.yaml:18
    @property
    def whole(self) -> Tensor | None: ...  # [2] float32, spec.yaml:21


class StepLaterBatchLora(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def ids(self) -> Tensor | None: ...  # [tokens] int64, spec.yaml:19


class StepLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def counts(self) -> StepLaterBatchCounts: ...
    @property
    def mm(self) -> StepLaterBatchMm: ...
    @property
    def spec(self) -> StepLaterBatchSpec | None: ...
    @property
    def lora(self) -> StepLaterBatchLora | None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    bias: Tensor  # [tokens] int64, spec.yaml:17
    scale: Tensor  # [tokens] float32, spec.yaml:18
    adapter: Tensor | None  # [tokens] int64, spec.yaml:19
    grid: Tensor  # [images, 3] int64, spec.yaml:20
    whole: Tensor  # [2] float32, spec.yaml:21


class StepLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        batch: StepLaterSlots,
        lora: Tensor | None,
        hidden_states: Tensor,
    ) -> object: ...


class StepLaterInputs(rt.Inputs[StepExtents, StepLaterBatch, Dims, StepLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "bias", "scale", "adapter", "grid", "whole")

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "bias": (rows.tokens,),
            "scale": (rows.tokens,),
            "adapter": (rows.tokens,),
            "grid": (rows.images, 3),
            "whole": (2,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> StepLaterSlots:
        return StepLaterSlots(
            bias=of["bias"],
            scale=of["scale"],
            adapter=of["adapter"],
            grid=of["grid"],
            whole=of["whole"],
        )

    def load(
        self,
        slots: StepLaterSlots,
        host: rt.BucketHost,
        batch: StepLaterBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, bias_rows = host.begin()
        counts.set_rows(live)
        # bias (spec.yaml:17): batch.spec.info.bias, then zero
        if batch.spec is None or batch.spec.info is None or batch.spec.info.bias is None:
            bias_rows.set_live(live.tokens, 1)
        else:
            bias_rows.put(batch.spec.info.bias, live.tokens)
        # scale (spec.yaml:18): batch.spec.scale, then zero
        if batch.spec is None or batch.spec.scale is None:
            rt.fill_live(slots.scale, live.tokens, 0.5)
        else:
            rt.copy_rows(slots.scale, batch.spec.scale, live.tokens, "scale")
        rt.pad_zero(slots.scale, live.tokens)
        # adapter (spec.yaml:19): batch.lora.ids, then zero
        if slots.adapter is not None:  # it is, but for eager steps
            rt.copy_rows(
                slots.adapter,
                None if batch.lora is None else batch.lora.ids,
                live.tokens,
                "adapter",
            )
            rt.pad_zero(slots.adapter, live.tokens)
        # grid (spec.yaml:20): batch.mm.grid, then zero
        host.move_rows(
            slots.grid,
            None if batch.mm is None else batch.mm.grid,
            live.images,
            "grid",
            0,
        )
        # whole (spec.yaml:21): batch.spec.whole, no padded rows
        if batch.spec is None or batch.spec.whole is None:
            rt.fill_whole(slots.whole, 2)
        else:
            rt.copy_whole(slots.whole, batch.spec.whole, "whole")
        host.push()

    def bind(self, batch: StepLaterBatch, boundary: Boundary, live: StepExtents) -> StepLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepLaterSlots(
            bias=rows.upload(
                "bias",
                None if batch.spec is None or batch.spec.info is None else batch.spec.info.bias,
                absent=1,
            ),
            scale=rows.own("scale", None if batch.spec is None else batch.spec.scale, absent=0.5),
            adapter=rows.own_if_given("adapter", None if batch.lora is None else batch.lora.ids),
            grid=rows.own("grid", None if batch.mm is None else batch.mm.grid),
            whole=rows.own("whole", None if batch.spec is None else batch.spec.whole, absent=2),
        )

    def absent(self, batch: StepLaterBatch) -> str | None:
        if batch.lora is None or batch.lora.ids is None:
            return "adapter"
        return None


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
        return self.model(
            input_ids=None,
            batch=slots,
            lora=slots.adapter,
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
