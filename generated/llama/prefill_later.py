# ppcgc: generated from specs/llama.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:2c4847b3a218e5a2b0391c899a8f056c233c69768480a7ee2c6373c54f3f924f
"""llama.prefill, middle and last stages: slots, how a batch fills them, runners."""

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
KEYWORDS = ("input_ids", "positions", "batch", "pp_proxy_tensors")

OutT = TypeVar("OutT")


class PrefillLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:35
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama.yaml:36
    @property
    def cu_seqlens(self) -> rt.HostSource: ...  # [requests + 1] int32, llama.yaml:37
    @property
    def seq_lens(self) -> rt.HostSource: ...  # [requests] int32, llama.yaml:38


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [tokens] int64, llama.yaml:35
    slot_mapping: Tensor  # [tokens] int64, llama.yaml:36
    cu_seqlens: Tensor  # [requests + 1] int32, llama.yaml:37
    seq_lens: Tensor  # [requests] int32, llama.yaml:38
    num_tokens: Tensor  # [1] int32, llama.yaml:39


class PrefillLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: None,
        positions: Tensor,
        batch: PrefillLaterSlots,
        pp_proxy_tensors: Boundary,
    ) -> object: ...


class PrefillLaterInputs(rt.Inputs[PrefillExtents, PrefillLaterBatch, Dims, PrefillLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "positions", "slot_mapping", "cu_seqlens", "seq_lens", "num_tokens")

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "cu_seqlens": (rows.requests + 1,),
            "seq_lens": (rows.requests,),
            "num_tokens": (1,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> PrefillLaterSlots:
        return PrefillLaterSlots(
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            cu_seqlens=of["cu_seqlens"],
            seq_lens=of["seq_lens"],
            num_tokens=of["num_tokens"],
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
            cu_seqlens_rows,
            seq_lens_rows,
            num_tokens_rows,
        ) = host.begin()
        counts.set_rows(live)
        # positions (llama.yaml:35): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (llama.yaml:36): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # cu_seqlens (llama.yaml:37): batch.cu_seqlens, then the last live row again
        cu_seqlens_rows.put(batch.cu_seqlens, live.requests + 1)
        cu_seqlens_rows.pad_repeat_last(live.requests + 1)
        cu_seqlens_rows.check_offsets(live.requests + 1, live.tokens, closed=True)
        # seq_lens (llama.yaml:38): batch.seq_lens, then zero
        seq_lens_rows.put(batch.seq_lens, live.requests)
        seq_lens_rows.check_bounded(live.requests, self.dims.max_position)
        # num_tokens (llama.yaml:39): computed for every padded row
        num_tokens_rows.set_all(live.tokens)
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
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
            seq_lens=rows.upload("seq_lens", batch.seq_lens),
            num_tokens=rows.filled("num_tokens", live.tokens),
        )
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("cu_seqlens", live.tokens, closed=True)
        rows.check_bounded("seq_lens", self.dims.max_position)
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
        return self.model(
            input_ids=None,
            positions=slots.positions,
            batch=slots,
            pp_proxy_tensors=boundary,
        )


class PrefillMiddle(_PrefillLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class PrefillLast(_PrefillLater[PrefillOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillResults
