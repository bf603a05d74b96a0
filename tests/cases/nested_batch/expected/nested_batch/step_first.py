# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:629f4a4f06922c70560a978a219f6381aae2003707843c81773037413dcb7db5
"""nested_batch.step, only and first stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import FINGERPRINT, Dims
from .step import (
    AXES,
    BUCKETS,
    COLUMNS,
    COUNTS,
    StepExtents,
    StepOutputs,
    StepResults,
    choose,
    extents,
)

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
    def info(self) -> StepFirstBatchSpecInfo: ...
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """The slots in memory, and how a batch gets into them."""

    def table(self) -> tuple[rt.SlotInfo, ...]:
        return (
            rt.SlotInfo(
                name="input_ids",
                line="spec.yaml:16",
                axes=("tokens",),
                dtype=torch.int64,
                padding="zero",
                batch="text.ids",
                host=True,
            ),
            rt.SlotInfo(
                name="bias",
                line="spec.yaml:17",
                axes=("tokens",),
                dtype=torch.int64,
                padding="zero",
                batch="spec.info.bias",
                host=True,
                absent=1,
            ),
            rt.SlotInfo(
                name="scale",
                line="spec.yaml:18",
                axes=("tokens",),
                dtype=torch.float32,
                padding="zero",
                batch="spec.scale",
                absent=0.5,
            ),
            rt.SlotInfo(
                name="adapter",
                line="spec.yaml:19",
                axes=("tokens",),
                dtype=torch.int64,
                padding="zero",
                batch="lora.ids",
            ),
            rt.SlotInfo(
                name="grid",
                line="spec.yaml:20",
                axes=("images",),
                dtype=torch.int64,
                padding="zero",
                batch="mm.grid",
            ),
            rt.SlotInfo(
                name="whole",
                line="spec.yaml:21",
                axes=(),
                dtype=torch.float32,
                padding="none",
                batch="spec.whole",
                absent=2,
            ),
        )

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "bias": (rows.tokens,),
            "scale": (rows.tokens,),
            "adapter": (rows.tokens,),
            "grid": (rows.images, 3),
            "whole": (2,),
        }

    def host_slots(self, rows: StepExtents) -> tuple[rt.HostSlot, ...]:
        return self.block(rows, "input_ids", "bias")

    def slots(
        self,
        arena: rt.DeviceArena,
        host: tuple[Tensor, ...],
        rows: StepExtents,
        full: StepExtents,
    ) -> StepFirstSlots:
        shapes, full_shapes = self.shapes(rows), self.shapes(full)
        return StepFirstSlots(
            input_ids=host[0],
            bias=host[1],
            scale=arena.rows("slot.scale", shapes["scale"], full_shapes["scale"], torch.float32),
            adapter=arena.rows(
                "slot.adapter",
                shapes["adapter"],
                full_shapes["adapter"],
                torch.int64,
            ),
            grid=arena.rows("slot.grid", shapes["grid"], full_shapes["grid"], torch.int64),
            whole=arena.rows("slot.whole", shapes["whole"], full_shapes["whole"], torch.float32),
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
        if (None if batch.spec is None or batch.spec.info is None else batch.spec.info.bias) is None:
            bias_rows.set_live(live.tokens, 1)
        else:
            bias_rows.put(
                None if batch.spec is None or batch.spec.info is None else batch.spec.info.bias,
                live.tokens,
            )
        # scale (spec.yaml:18): batch.spec.scale, then zero
        if (None if batch.spec is None else batch.spec.scale) is None:
            rt.fill_live(slots.scale, live.tokens, 0.5)
        else:
            rt.copy_rows(
                slots.scale,
                None if batch.spec is None else batch.spec.scale,
                live.tokens,
                "scale",
            )
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
        rt.copy_rows(slots.grid, None if batch.mm is None else batch.mm.grid, live.images, "grid")
        rt.pad_zero(slots.grid, live.images)
        # whole (spec.yaml:21): batch.spec.whole, no padded rows
        if (None if batch.spec is None else batch.spec.whole) is None:
            rt.fill_whole(slots.whole, 2)
        else:
            rt.copy_whole(slots.whole, None if batch.spec is None else batch.spec.whole, "whole")
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
        if (None if batch.lora is None else batch.lora.ids) is None:
            return "adapter"
        return None


class _StepFirst(rt.EntryStage[StepExtents, StepFirstBatch, Dims, StepFirstSlots, OutT]):
    """What the places of this kind share."""

    family = "nested_batch"
    runner = "step"
    axes = AXES
    columns = COLUMNS
    counts = COUNTS
    buckets = BUCKETS
    fingerprint = FINGERPRINT
    require_graph = False
    transport = "eager"
    compile = "none"
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
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

    def extents(self, batch: StepFirstBatch) -> StepExtents:
        return extents(batch, self.dims)

    def choose(self, live: StepExtents) -> rt.Choice[StepExtents]:
        return choose(live, self.dims)

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
