# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""bench_llama.prefill_on_device, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims, State
from .prefill_on_device import (
    PrefillOnDeviceExtents,
    PrefillOnDeviceOutputs,
    PrefillOnDeviceResults,
    PrefillOnDeviceSteps,
)
from .prefill_on_device_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("positions", "batch", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class PrefillOnDeviceLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> Tensor: ...  # [tokens] int64, bench_llama.yaml:74
    @property
    def slot_mapping(self) -> Tensor: ...  # [tokens] int64, bench_llama.yaml:75
    @property
    def request_rows(self) -> Tensor: ...  # [requests] int64, bench_llama.yaml:76
    @property
    def seq_lens(self) -> Tensor: ...  # [requests] int32, bench_llama.yaml:77
    @property
    def prefix_lens(self) -> Tensor: ...  # [requests] int32, bench_llama.yaml:78
    @property
    def starts(self) -> Tensor: ...  # [requests] int32, bench_llama.yaml:79
    @property
    def cu_seqlens(self) -> Tensor: ...  # [requests + 1] int32, bench_llama.yaml:80


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillOnDeviceLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, bench_llama.yaml:74
    slot_mapping: Tensor  # [tokens] int64, bench_llama.yaml:75
    request_rows: Tensor  # [requests] int64, bench_llama.yaml:76
    seq_lens: Tensor  # [requests] int32, bench_llama.yaml:77
    prefix_lens: Tensor  # [requests] int32, bench_llama.yaml:78
    starts: Tensor  # [requests] int32, bench_llama.yaml:79
    cu_seqlens: Tensor  # [requests + 1] int32, bench_llama.yaml:80


class PrefillOnDeviceLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        positions: Tensor,
        batch: PrefillOnDeviceLaterSlots,
        pp_proxy_tensors: Boundary,
    ) -> object: ...


class PrefillOnDeviceLaterInputs(
    rt.Inputs[PrefillOnDeviceExtents, PrefillOnDeviceLaterBatch, Dims, PrefillOnDeviceLaterSlots],
):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: PrefillOnDeviceExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "request_rows": (rows.requests,),
            "seq_lens": (rows.requests,),
            "prefix_lens": (rows.requests,),
            "starts": (rows.requests,),
            "cu_seqlens": (rows.requests + 1,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> PrefillOnDeviceLaterSlots:
        return PrefillOnDeviceLaterSlots(
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            request_rows=of["request_rows"],
            seq_lens=of["seq_lens"],
            prefix_lens=of["prefix_lens"],
            starts=of["starts"],
            cu_seqlens=of["cu_seqlens"],
        )

    def load(
        self,
        slots: PrefillOnDeviceLaterSlots,
        host: rt.BucketHost,
        batch: PrefillOnDeviceLaterBatch,
        live: PrefillOnDeviceExtents,
        padded: PrefillOnDeviceExtents,
    ) -> None:
        (counts,) = host.begin()
        counts.set_rows(live)
        # positions (bench_llama.yaml:74): batch.positions, then zero
        host.move_rows(slots.positions, batch.positions, live.tokens, "positions", 0)
        # slot_mapping (bench_llama.yaml:75): batch.slot_mapping, then zero
        host.move_rows(slots.slot_mapping, batch.slot_mapping, live.tokens, "slot_mapping", 0)
        # request_rows (bench_llama.yaml:76): batch.request_rows, then zero
        host.move_rows(slots.request_rows, batch.request_rows, live.requests, "request_rows", 0)
        # seq_lens (bench_llama.yaml:77): batch.seq_lens, then zero
        host.move_rows(slots.seq_lens, batch.seq_lens, live.requests, "seq_lens", 0)
        # prefix_lens (bench_llama.yaml:78): batch.prefix_lens, then zero
        host.move_rows(slots.prefix_lens, batch.prefix_lens, live.requests, "prefix_lens", 0)
        # starts (bench_llama.yaml:79): batch.starts, then zero
        host.move_rows(slots.starts, batch.starts, live.requests, "starts", 0)
        # cu_seqlens (bench_llama.yaml:80): batch.cu_seqlens, then the last live row again
        host.move_rows(slots.cu_seqlens, batch.cu_seqlens, live.requests + 1, "cu_seqlens", None)
        host.push()

    def bind(
        self,
        batch: PrefillOnDeviceLaterBatch,
        boundary: Boundary,
        live: PrefillOnDeviceExtents,
    ) -> PrefillOnDeviceLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        return PrefillOnDeviceLaterSlots(
            positions=rows.own("positions", batch.positions),
            slot_mapping=rows.own("slot_mapping", batch.slot_mapping),
            request_rows=rows.own("request_rows", batch.request_rows),
            seq_lens=rows.own("seq_lens", batch.seq_lens),
            prefix_lens=rows.own("prefix_lens", batch.prefix_lens),
            starts=rows.own("starts", batch.starts),
            cu_seqlens=rows.own("cu_seqlens", batch.cu_seqlens),
        )

    def capture_fills(self, padded: PrefillOnDeviceExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _PrefillOnDeviceLater(
    PrefillOnDeviceSteps,
    rt.LaterStage[
        PrefillOnDeviceExtents,
        PrefillOnDeviceLaterBatch,
        Dims,
        PrefillOnDeviceLaterSlots,
        Boundary,
        OutT,
    ],
):
    """What the places of this kind share."""

    inputs_type = PrefillOnDeviceLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillOnDeviceLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        state: State,
        dtype: torch.dtype,
        backend: rt.Backend,
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims), state=(state, State))
        state.check(dims, backend.device)
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.state = state

    def forward(
        self,
        slots: PrefillOnDeviceLaterSlots,
        boundary: Boundary,
        rows: PrefillOnDeviceExtents,
        made: rt.Made,
    ) -> object:
        return self.model(positions=slots.positions, batch=slots, pp_proxy_tensors=boundary)


class PrefillOnDeviceMiddle(_PrefillOnDeviceLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class PrefillOnDeviceLast(_PrefillOnDeviceLater[PrefillOnDeviceOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillOnDeviceResults
