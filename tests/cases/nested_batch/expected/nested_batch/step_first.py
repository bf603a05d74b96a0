# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:189a31b95294779ea8cb21a47bf0f77c1efe7d5be97a228617b6ed2428e9ac79
"""nested_batch.step, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "batch", "lora", "hidden_states")

OutT = TypeVar("OutT")


class StepFirstBatchCounts(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def tokens(self) -> int: ...  # live tokens


class StepFirstBatchMmCounts(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def images(self) -> int: ...  # live images


class StepFirstBatchMm(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def counts(self) -> StepFirstBatchMmCounts: ...
    @property
    def grid(self) -> Tensor: ...  # [images, 3] int64, spec.yaml:20


class StepFirstBatchText(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def ids(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:16


class StepFirstBatchSpecInfo(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def bias(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:17


class StepFirstBatchSpec(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def info(self) -> StepFirstBatchSpecInfo | None: ...
    @property
    def scale(self) -> Tensor | None: ...  # [tokens] float32, spec.yaml:18
    @property
    def whole(self) -> Tensor | None: ...  # [2] float32, spec.yaml:21


class StepFirstBatchLora(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def ids(self) -> Tensor | None: ...  # [tokens] int64, spec.yaml:19


class StepFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def counts(self) -> StepFirstBatchCounts: ...
    @property
    def mm(self) -> StepFirstBatchMm: ...
    @property
    def text(self) -> StepFirstBatchText: ...
    @property
    def spec(self) -> StepFirstBatchSpec | None: ...
    @property
    def lora(self) -> StepFirstBatchLora | None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StepFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, spec.yaml:16
    bias: Tensor  # [tokens] int64, spec.yaml:17
    scale: Tensor  # [tokens] float32, spec.yaml:18
    adapter: Tensor | None  # [tokens] int64, spec.yaml:19
    grid: Tensor  # [images, 3] int64, spec.yaml:20
    whole: Tensor  # [2] float32, spec.yaml:21


class StepFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        batch: StepFirstSlots,
        lora: Tensor | None,
        hidden_states: None,
    ) -> object: ...


class StepFirstInputs(rt.Inputs[StepExtents, StepFirstBatch, Dims, StepFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "bias": (rows.tokens,),
            "scale": (rows.tokens,),
            "adapter": (rows.tokens,),
            "grid": (rows.images, 3),
            "whole": (2,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> StepFirstSlots:
        return StepFirstSlots(
            input_ids=of["input_ids"],
            bias=of["bias"],
            scale=of["scale"],
            adapter=of["adapter"],
            grid=of["grid"],
            whole=of["whole"],
        )

    def load(
        self,
        slots: StepFirstSlots,
        host: rt.BucketHost,
        batch: StepFirstBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        counts, input_ids_rows, bias_rows = host.begin()
        counts.set_rows(live)
        # input_ids (spec.yaml:16): batch.text.ids, then zero
        input_ids_rows.put(None if batch.text is None else batch.text.ids, live.tokens)
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

    def bind(self, batch: StepFirstBatch, boundary: None, live: StepExtents) -> StepFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepFirstSlots(
            input_ids=rows.upload("input_ids", None if batch.text is None else batch.text.ids),
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

    def absent(self, batch: StepFirstBatch) -> str | None:
        if batch.lora is None or batch.lora.ids is None:
            return "adapter"
        return None


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
        return self.model(
            input_ids=slots.input_ids,
            batch=slots,
            lora=slots.adapter,
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
