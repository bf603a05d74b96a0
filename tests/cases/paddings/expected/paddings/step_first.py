# ppcgc: generated from spec.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:4aa9ba1a69bf7eca98cd0758fd684b7173544242b678df2027b62ca1f727b8ef
"""paddings.step, only and first stages: slots, how a batch fills them, runners."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
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
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

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

    def initials(self) -> dict[str, float]:
        return {"host_fill": -7, "host_dim": self.dims.sink, "host_keep": 3, "keep": 1.0}

    def slots(self, of: Mapping[str, Tensor]) -> StepFirstSlots:
        return StepFirstSlots(
            host_zero=of["host_zero"],
            host_fill=of["host_fill"],
            host_dim=of["host_dim"],
            host_live=of["host_live"],
            host_repeat=of["host_repeat"],
            host_keep=of["host_keep"],
            zero=of["zero"],
            fill=of["fill"],
            infinite=of["infinite"],
            lively=of["lively"],
            repeat=of["repeat"],
            keep=of["keep"],
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
        host.move_rows(slots.zero, batch.zero, live.tokens, "zero", 0)
        # fill (spec.yaml:26): batch.fill, then its fill
        host.move_rows(slots.fill, batch.fill, live.tokens, "fill", 0.5)
        # infinite (spec.yaml:27): batch.infinite, then its fill
        host.move_rows(slots.infinite, batch.infinite, live.tokens, "infinite", float("-inf"))
        # lively (spec.yaml:28): batch.lively, then its fill
        rt.copy_rows(slots.lively, batch.lively, live.tokens, "lively")
        rt.pad_fill(
            slots.lively,
            live.tokens,
            rt.fitting("lively", padded.tokens - live.tokens, slots.lively),
        )
        # repeat (spec.yaml:29): batch.repeat, then the last live row again
        host.move_rows(slots.repeat, batch.repeat, live.tokens, "repeat", None)
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
        rt.check_value("host_dim", dims.sink, torch.int64, "spec.yaml:21")
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)

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
