# ppcgc: generated from specs/bench_llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:1a9996329bccfba3693523ddf7406001fb97911900169b5cb732c52ddb53c35b
"""bench_llama.prefill, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .family import Dims, State
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("positions", "batch", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class PrefillLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, bench_llama.yaml:34
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, bench_llama.yaml:35
    @property
    def request_rows(self) -> rt.HostSource: ...  # [requests] int64, bench_llama.yaml:36
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, bench_llama.yaml:37
    @property
    def prefix_lens(self) -> rt.HostSource: ...  # [requests] int32, bench_llama.yaml:38
    @property
    def starts(self) -> rt.HostSource: ...  # [requests] int32, bench_llama.yaml:39
    @property
    def cu_seqlens(self) -> rt.HostSource: ...  # [requests + 1] int32, bench_llama.yaml:40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, bench_llama.yaml:34
    slot_mapping: Tensor  # [tokens] int64, bench_llama.yaml:35
    request_rows: Tensor  # [requests] int64, bench_llama.yaml:36
    seq_lens: Tensor  # [requests] int32, bench_llama.yaml:37
    prefix_lens: Tensor  # [requests] int32, bench_llama.yaml:38
    starts: Tensor  # [requests] int32, bench_llama.yaml:39
    cu_seqlens: Tensor  # [requests + 1] int32, bench_llama.yaml:40


class PrefillLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        positions: Tensor,
        batch: PrefillLaterSlots,
        pp_proxy_tensors: Boundary,
    ) -> object: ...


class PrefillLaterInputs(rt.Inputs[PrefillExtents, PrefillLaterBatch, Dims, PrefillLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "request_rows": (rows.requests,),
            "seq_lens": (rows.requests,),
            "prefix_lens": (rows.requests,),
            "starts": (rows.requests,),
            "cu_seqlens": (rows.requests + 1,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> PrefillLaterSlots:
        return PrefillLaterSlots(
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
        slots: PrefillLaterSlots,
        host: rt.BucketHost,
        batch: PrefillLaterBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        (
            counts,
            positions_rows,
            slot_mapping_rows,
            request_rows_rows,
            seq_lens_rows,
            prefix_lens_rows,
            starts_rows,
            cu_seqlens_rows,
        ) = host.begin()
        counts.set_rows(live)
        # positions (bench_llama.yaml:34): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (bench_llama.yaml:35): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # request_rows (bench_llama.yaml:36): batch.request_rows, then zero
        request_rows_rows.put(batch.request_rows, live.requests)
        # seq_lens (bench_llama.yaml:37): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.max_position)
        # prefix_lens (bench_llama.yaml:38): batch.prefix_lens, then zero
        prefix_lens_rows.put(batch.prefix_lens, live.requests)
        prefix_lens_rows.check_bounded(live.requests, self.dims.max_position)
        # starts (bench_llama.yaml:39): batch.starts, then zero
        starts_rows.put(batch.starts, live.requests)
        # cu_seqlens (bench_llama.yaml:40): batch.cu_seqlens, then the last live row again
        cu_seqlens_rows.put(batch.cu_seqlens, live.requests + 1)
        cu_seqlens_rows.pad_repeat_last(live.requests + 1)
        cu_seqlens_rows.check_offsets(live.requests + 1, live.tokens, closed=True)
        host.push()

    def bind(
        self,
        batch: PrefillLaterBatch,
        boundary: Boundary,
        live: PrefillExtents,
    ) -> PrefillLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillLaterSlots(
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            request_rows=rows.upload("request_rows", batch.request_rows),
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            prefix_lens=rows.upload("prefix_lens", batch.prefix_lens),
            starts=rows.upload("starts", batch.starts),
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
        )
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_bounded("seq_lens", self.dims.max_position)
        rows.check_bounded("prefix_lens", self.dims.max_position)
        rows.check_offsets("cu_seqlens", live.tokens, closed=True)
        return slots

    def capture_fills(self, padded: PrefillExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _PrefillLater(
    PrefillSteps,
    rt.LaterStage[PrefillExtents, PrefillLaterBatch, Dims, PrefillLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillLaterModel,
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
        slots: PrefillLaterSlots,
        boundary: Boundary,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(positions=slots.positions, batch=slots, pp_proxy_tensors=boundary)


class PrefillMiddle(_PrefillLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class PrefillLast(_PrefillLater[PrefillOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillResults
