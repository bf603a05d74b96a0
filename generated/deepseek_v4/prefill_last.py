# ppcgc: generated from specs/deepseek_v4.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:0e88973b6be78f978cf1dd5448851ff2143ddfd8576aaf45063f6a2620385d4f
"""deepseek_v4.prefill, last stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, Received
from .family import Dims, State
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "streams")

OutT = TypeVar("OutT")


class PrefillLastBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, deepseek_v4.yaml:28
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:36
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:37
    @property
    def cu_seqlens(self) -> rt.HostSource: ...  # [requests + 1] int32, llama_hf.yaml:38
    @property
    def last_token(self) -> rt.HostSource: ...  # [requests] int64, llama_hf.yaml:39


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillLastSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor | None  # [tokens] int64, deepseek_v4.yaml:28
    positions: Tensor  # [tokens] int64, llama_hf.yaml:36
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:37
    cu_seqlens: Tensor  # [requests + 1] int32, llama_hf.yaml:38
    last_token: Tensor  # [requests] int64, llama_hf.yaml:39


class PrefillLastModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor | None,
        positions: Tensor,
        batch: PrefillLastSlots,
        streams: Tensor,
    ) -> object: ...


class PrefillLastInputs(rt.Inputs[PrefillExtents, PrefillLastBatch, Dims, PrefillLastSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "cu_seqlens": (rows.requests + 1,),
            "last_token": (rows.requests,),
        }

    def lacks(self, rows: PrefillExtents) -> frozenset[str]:
        there = {"input_ids": rt.owns(self.layers, self.dims.kinds.hash)}
        return frozenset(name for name, holds in there.items() if not holds)

    def slots(self, of: Mapping[str, Tensor]) -> PrefillLastSlots:
        return PrefillLastSlots(
            input_ids=of.get("input_ids"),
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            cu_seqlens=of["cu_seqlens"],
            last_token=of["last_token"],
        )

    def load(
        self,
        slots: PrefillLastSlots,
        host: rt.BucketHost,
        batch: PrefillLastBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        (
            counts,
            input_ids_rows,
            positions_rows,
            slot_mapping_rows,
            cu_seqlens_rows,
            last_token_rows,
        ) = host.begin()
        counts.set_rows(live)
        # input_ids (deepseek_v4.yaml:28): batch.input_ids, then zero
        if slots.input_ids is not None:
            input_ids_rows.put(batch.input_ids, live.tokens)
            input_ids_rows.check_index(live.tokens, self.dims.vocab)
        # positions (llama_hf.yaml:36): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (llama_hf.yaml:37): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # cu_seqlens (llama_hf.yaml:38): batch.cu_seqlens, then the last live row again
        cu_seqlens_rows.put(batch.cu_seqlens, live.requests + 1)
        cu_seqlens_rows.pad_repeat_last(live.requests + 1)
        cu_seqlens_rows.check_offsets(live.requests + 1, live.tokens, closed=True)
        # last_token (llama_hf.yaml:39): batch.last_token, then zero
        last_token_rows.put(batch.last_token, live.requests)
        last_token_rows.check_index(live.requests, live.tokens)
        host.push()

    def bind(
        self,
        batch: PrefillLastBatch,
        boundary: Boundary,
        live: PrefillExtents,
    ) -> PrefillLastSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        input_ids_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.hash):
            input_ids_slot = rows.upload("input_ids", batch.input_ids)
        slots = PrefillLastSlots(
            input_ids=input_ids_slot,
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
            last_token=rows.upload("last_token", batch.last_token),
        )
        if slots.input_ids is not None:
            rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("cu_seqlens", live.tokens, closed=True)
        rows.check_index("last_token", live.tokens)
        return slots

    def capture_fills(self, padded: PrefillExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _PrefillLast(
    PrefillSteps,
    rt.LaterStage[PrefillExtents, PrefillLastBatch, Dims, PrefillLastSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillLastInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: PrefillLastModel,
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
        slots: PrefillLastSlots,
        boundary: Boundary,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            positions=slots.positions,
            batch=slots,
            streams=boundary.hidden_states,
        )


class PrefillLast(_PrefillLast[PrefillOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = PrefillResults
