# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 1; do not edit
# spec: sha256:9cdb2ab0335cbdd0602631574ee19ae6f97e0f398e0057ca8f489ce472a649c2
"""paddings.step, only and first stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("batch", "received")

OutT = TypeVar("OutT")


class StepFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def host_zero(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:19
    @property
    def host_fill(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:20
    @property
    def host_dim(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:21
    @property
    def host_live(self) -> rt.HostSource: ...  # [tokens] int32, spec.yaml:22
    @property
    def host_repeat(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:23
    @property
    def host_keep(self) -> rt.HostSource: ...  # [tokens] int64, spec.yaml:24
    @property
    def zero(self) -> Tensor: ...  # [tokens] int64, spec.yaml:25
    @property
    def fill(self) -> Tensor: ...  # [tokens] float32, spec.yaml:26
    @property
    def infinite(self) -> Tensor: ...  # [tokens] float32, spec.yaml:27
    @property
    def lively(self) -> Tensor: ...  # [tokens] int64, spec.yaml:28
    @property
    def repeat(self) -> Tensor: ...  # [tokens] int64, spec.yaml:29
    @property
    def keep(self) -> Tensor: ...  # [tokens] float32, spec.yaml:30


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    host_zero: Tensor  # [tokens] int64, spec.yaml:19
    host_fill: Tensor  # [tokens] int64, spec.yaml:20
    host_dim: Tensor  # [tokens] int64, spec.yaml:21
    host_live: Tensor  # [tokens] int32, spec.yaml:22
    host_repeat: Tensor  # [tokens] int64, spec.yaml:23
    host_keep: Tensor  # [tokens] int64, spec.yaml:24
    zero: Tensor  # [tokens] int64, spec.yaml:25
    fill: Tensor  # [tokens] float32, spec.yaml:26
    infinite: Tensor  # [tokens] float32, spec.yaml:27
    lively: Tensor  # [tokens] int64, spec.yaml:28
    repeat: Tensor  # [tokens] int64, spec.yaml:29
    keep: Tensor  # [tokens] float32, spec.yaml:30


class StepFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: StepFirstSlots, received: None) -> object: ...


class StepFirstInputs(rt.Inputs[StepExtents, StepFirstBatch, Dims, StepFirstSlots]):
    """The slots in memory, and how a batch gets into them."""

    def table(self) -> tuple[rt.SlotInfo, ...]:
        return (
            rt.SlotInfo(
                name="host_zero",
                line="spec.yaml:19",
                axes=("tokens",),
                dtype=torch.int64,
                padding="zero",
                batch="host_zero",
                host=True,
            ),
            rt.SlotInfo(
                name="host_fill",
                line="spec.yaml:20",
                axes=("tokens",),
                dtype=torch.int64,
                padding="fill",
                batch="host_fill",
                host=True,
                image=-7,
                fill="-7",
            ),
            rt.SlotInfo(
                name="host_dim",
                line="spec.yaml:21",
                axes=("tokens",),
                dtype=torch.int64,
                padding="fill",
                batch="host_dim",
                host=True,
                image=self.dims.sink,
                fill="dims.sink",
            ),
            rt.SlotInfo(
                name="host_live",
                line="spec.yaml:22",
                axes=("tokens",),
                dtype=torch.int32,
                padding="fill",
                batch="host_live",
                host=True,
                fill="live.tokens * 2",
            ),
            rt.SlotInfo(
                name="host_repeat",
                line="spec.yaml:23",
                axes=("tokens",),
                dtype=torch.int64,
                padding="repeat_last",
                batch="host_repeat",
                host=True,
            ),
            rt.SlotInfo(
                name="host_keep",
                line="spec.yaml:24",
                axes=("tokens",),
                dtype=torch.int64,
                padding="keep",
                batch="host_keep",
                host=True,
                fill="3",
            ),
            rt.SlotInfo(
                name="zero",
                line="spec.yaml:25",
                axes=("tokens",),
                dtype=torch.int64,
                padding="zero",
                batch="zero",
            ),
            rt.SlotInfo(
                name="fill",
                line="spec.yaml:26",
                axes=("tokens",),
                dtype=torch.float32,
                padding="fill",
                batch="fill",
                fill="0.5",
            ),
            rt.SlotInfo(
                name="infinite",
                line="spec.yaml:27",
                axes=("tokens",),
                dtype=torch.float32,
                padding="fill",
                batch="infinite",
                fill="-inf",
            ),
            rt.SlotInfo(
                name="lively",
                line="spec.yaml:28",
                axes=("tokens",),
                dtype=torch.int64,
                padding="fill",
                batch="lively",
                fill="padded.tokens - live.tokens",
            ),
            rt.SlotInfo(
                name="repeat",
                line="spec.yaml:29",
                axes=("tokens",),
                dtype=torch.int64,
                padding="repeat_last",
                batch="repeat",
            ),
            rt.SlotInfo(
                name="keep",
                line="spec.yaml:30",
                axes=("tokens",),
                dtype=torch.float32,
                padding="keep",
                batch="keep",
                fill="1.0",
            ),
        )

    def shapes(self, rows: StepExtents) -> dict[str, tuple[int, ...]]:
        return {
            "host_zero": (rows.tokens,),
            "host_fill": (rows.tokens,),
            "host_dim": (rows.tokens,),
            "host_live": (rows.tokens,),
            "host_repeat": (rows.tokens,),
            "host_keep": (rows.tokens,),
            "zero": (rows.tokens,),
            "fill": (rows.tokens,),
            "infinite": (rows.tokens,),
            "lively": (rows.tokens,),
            "repeat": (rows.tokens,),
            "keep": (rows.tokens,),
        }

    def host_slots(self, rows: StepExtents) -> tuple[rt.HostSlot, ...]:
        return self.block(rows, "host_zero", "host_fill", "host_dim", "host_live", "host_repeat")

    def slots(
        self,
        arena: rt.DeviceArena,
        host: tuple[Tensor, ...],
        rows: StepExtents,
        full: StepExtents,
    ) -> StepFirstSlots:
        shapes, full_shapes = self.shapes(rows), self.shapes(full)
        return StepFirstSlots(
            host_zero=host[0],
            host_fill=host[1],
            host_dim=host[2],
            host_live=host[3],
            host_repeat=host[4],
            host_keep=arena.rows(
                "slot.host_keep",
                shapes["host_keep"],
                full_shapes["host_keep"],
                torch.int64,
                initial=3,
            ),
            zero=arena.rows("slot.zero", shapes["zero"], full_shapes["zero"], torch.int64),
            fill=arena.rows("slot.fill", shapes["fill"], full_shapes["fill"], torch.float32),
            infinite=arena.rows(
                "slot.infinite",
                shapes["infinite"],
                full_shapes["infinite"],
                torch.float32,
            ),
            lively=arena.rows("slot.lively", shapes["lively"], full_shapes["lively"], torch.int64),
            repeat=arena.rows("slot.repeat", shapes["repeat"], full_shapes["repeat"], torch.int64),
            keep=arena.rows(
                "slot.keep",
                shapes["keep"],
                full_shapes["keep"],
                torch.float32,
                initial=1.0,
            ),
        )

    def load(
        self,
        slots: StepFirstSlots,
        host: rt.BucketHost,
        batch: StepFirstBatch,
        live: StepExtents,
        padded: StepExtents,
    ) -> None:
        (
            counts,
            host_zero_rows,
            host_fill_rows,
            host_dim_rows,
            host_live_rows,
            host_repeat_rows,
        ) = host.begin()
        counts.set_rows(live)
        # host_zero (spec.yaml:19): batch.host_zero, then zero
        host_zero_rows.put(batch.host_zero, live.tokens)
        # host_fill (spec.yaml:20): batch.host_fill, then its fill
        host_fill_rows.put(batch.host_fill, live.tokens)
        # host_dim (spec.yaml:21): batch.host_dim, then its fill
        host_dim_rows.put(batch.host_dim, live.tokens)
        # host_live (spec.yaml:22): batch.host_live, then its fill
        host_live_rows.put(batch.host_live, live.tokens)
        host_live_rows.pad_fill(live.tokens, live.tokens * 2)
        # host_repeat (spec.yaml:23): batch.host_repeat, then the last live row again
        host_repeat_rows.put(batch.host_repeat, live.tokens)
        host_repeat_rows.pad_repeat_last(live.tokens)
        # host_keep (spec.yaml:24): batch.host_keep, rows past live keep what they hold
        rt.upload_rows(slots.host_keep, batch.host_keep, live.tokens, "host_keep")
        # zero (spec.yaml:25): batch.zero, then zero
        rt.copy_rows(slots.zero, batch.zero, live.tokens, "zero")
        rt.pad_zero(slots.zero, live.tokens)
        # fill (spec.yaml:26): batch.fill, then its fill
        rt.copy_rows(slots.fill, batch.fill, live.tokens, "fill")
        rt.pad_fill(slots.fill, live.tokens, 0.5)
        # infinite (spec.yaml:27): batch.infinite, then its fill
        rt.copy_rows(slots.infinite, batch.infinite, live.tokens, "infinite")
        rt.pad_fill(slots.infinite, live.tokens, float("-inf"))
        # lively (spec.yaml:28): batch.lively, then its fill
        rt.copy_rows(slots.lively, batch.lively, live.tokens, "lively")
        rt.pad_fill(slots.lively, live.tokens, padded.tokens - live.tokens)
        # repeat (spec.yaml:29): batch.repeat, then the last live row again
        rt.copy_rows(slots.repeat, batch.repeat, live.tokens, "repeat")
        rt.pad_repeat_last(slots.repeat, live.tokens)
        # keep (spec.yaml:30): batch.keep, rows past live keep what they hold
        rt.copy_rows(slots.keep, batch.keep, live.tokens, "keep")
        host.push()

    def bind(self, batch: StepFirstBatch, boundary: None, live: StepExtents) -> StepFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return StepFirstSlots(
            host_zero=rows.upload("host_zero", batch.host_zero),
            host_fill=rows.upload("host_fill", batch.host_fill),
            host_dim=rows.upload("host_dim", batch.host_dim),
            host_live=rows.upload("host_live", batch.host_live),
            host_repeat=rows.upload("host_repeat", batch.host_repeat),
            host_keep=rows.upload("host_keep", batch.host_keep),
            zero=rows.own("zero", batch.zero),
            fill=rows.own("fill", batch.fill),
            infinite=rows.own("infinite", batch.infinite),
            lively=rows.own("lively", batch.lively),
            repeat=rows.own("repeat", batch.repeat),
            keep=rows.own("keep", batch.keep),
        )


class _StepFirst(rt.EntryStage[StepExtents, StepFirstBatch, Dims, StepFirstSlots, OutT]):
    """What the places of this kind share."""

    family = "paddings"
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
        return self.model(batch=slots, received=None)


class StepOnly(_StepFirst[StepOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = StepResults


class StepFirst(_StepFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
