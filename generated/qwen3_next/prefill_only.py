# ppcgc: generated from specs/qwen3_next.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:8014a8d8d9f0f9908d5659329bf1399623714c00b3d5395b8677eb52dc0b5919
"""qwen3_next.prefill, only stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .family import Dims, State
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "state_rows", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillOnlyBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:35
    @property
    def positions(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:36
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:37
    @property
    def cu_seqlens(self) -> rt.HostSource: ...  # [requests + 1] int32, llama_hf.yaml:38
    @property
    def last_token(self) -> rt.HostSource: ...  # [requests] int64, llama_hf.yaml:39
    @property
    def state_rows(self) -> rt.HostSource: ...  # [requests] int64, qwen3_next.yaml:24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillOnlySlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama_hf.yaml:35
    positions: Tensor  # [tokens] int64, llama_hf.yaml:36
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:37
    cu_seqlens: Tensor  # [requests + 1] int32, llama_hf.yaml:38
    last_token: Tensor  # [requests] int64, llama_hf.yaml:39
    state_rows: Tensor | None  # [requests] int64, qwen3_next.yaml:24


class PrefillOnlyModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: PrefillOnlySlots,
        state_rows: Tensor | None,
        inputs_embeds: None,
    ) -> object: ...


class PrefillOnlyInputs(rt.Inputs[PrefillExtents, PrefillOnlyBatch, Dims, PrefillOnlySlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "cu_seqlens": (rows.requests + 1,),
            "last_token": (rows.requests,),
            "state_rows": (rows.requests,),
        }

    def lacks(self, rows: PrefillExtents) -> frozenset[str]:
        there = {"state_rows": rt.owns(self.layers, self.dims.kinds.recurrent)}
        return frozenset(name for name, holds in there.items() if not holds)

    def slots(self, of: Mapping[str, Tensor]) -> PrefillOnlySlots:
        return PrefillOnlySlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            cu_seqlens=of["cu_seqlens"],
            last_token=of["last_token"],
            state_rows=of.get("state_rows"),
        )

    def load(
        self,
        slots: PrefillOnlySlots,
        host: rt.BucketHost,
        batch: PrefillOnlyBatch,
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
            state_rows_rows,
        ) = host.begin()
        counts.set_rows(live)
        # input_ids (llama_hf.yaml:35): batch.input_ids, then zero
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
        # state_rows (qwen3_next.yaml:24): batch.state_rows, then zero
        if slots.state_rows is not None:
            state_rows_rows.put(batch.state_rows, live.requests)
            state_rows_rows.check_write_index(
                live.requests,
                self.dims.ssm_rows,
                skips_negative=False,
            )
        host.push()

    def bind(
        self,
        batch: PrefillOnlyBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillOnlySlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        state_rows_slot: Tensor | None = None
        if rt.owns(self.layers, self.dims.kinds.recurrent):
            state_rows_slot = rows.upload("state_rows", batch.state_rows)
        slots = PrefillOnlySlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
            last_token=rows.upload("last_token", batch.last_token),
            state_rows=state_rows_slot,
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("cu_seqlens", live.tokens, closed=True)
        rows.check_index("last_token", live.tokens)
        if slots.state_rows is not None:
            rows.check_write_index("state_rows", self.dims.ssm_rows, skips_negative=False)
        return slots

    def capture_fills(self, padded: PrefillExtents) -> dict[str, float]:
        return {"slot_mapping": 0, "state_rows": 0}


class _PrefillOnly(
    PrefillSteps,
    rt.EntryStage[PrefillExtents, PrefillOnlyBatch, Dims, PrefillOnlySlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillOnlyInputs

    def __init__(
        self,
        *,
        model: PrefillOnlyModel,
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
        slots: PrefillOnlySlots,
        boundary: None,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            positions=slots.positions,
            batch=slots,
            state_rows=slots.state_rows,
            inputs_embeds=None,
        )


class PrefillOnly(_PrefillOnly[PrefillOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = PrefillResults
