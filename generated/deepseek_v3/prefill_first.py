# ppcgc: generated from specs/deepseek_v3.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:4d45f984827946146368753d3fc7aca0831a388d94f88b26f2441ee665fc0495
"""deepseek_v3.prefill, first stage: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims, State
from .prefill import PrefillExtents, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS = ("input_ids", "positions", "batch", "inputs_embeds")

OutT = TypeVar("OutT")


class PrefillFirstBatch(Protocol):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, llama_hf.yaml:35
    positions: Tensor  # [tokens] int64, llama_hf.yaml:36
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:37
    cu_seqlens: Tensor  # [requests + 1] int32, llama_hf.yaml:38


class PrefillFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        input_ids: Tensor,
        positions: Tensor,
        batch: PrefillFirstSlots,
        inputs_embeds: None,
    ) -> object: ...


class PrefillFirstInputs(rt.Inputs[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(SLOTS, "input_ids", "positions", "slot_mapping", "cu_seqlens")

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "slot_mapping": (rows.tokens,),
            "cu_seqlens": (rows.requests + 1,),
        }

    def slots(self, of: Mapping[str, Tensor]) -> PrefillFirstSlots:
        return PrefillFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            cu_seqlens=of["cu_seqlens"],
        )

    def load(
        self,
        slots: PrefillFirstSlots,
        host: rt.BucketHost,
        batch: PrefillFirstBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, input_ids_rows, positions_rows, slot_mapping_rows, cu_seqlens_rows = host.begin()
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
        host.push()

    def bind(
        self,
        batch: PrefillFirstBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillFirstSlots(
            input_ids=rows.upload("input_ids", batch.input_ids),
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
        )
        rows.check_index("input_ids", self.dims.vocab)
        rows.check_index("positions", self.dims.max_position)
        rows.check_write_index("slot_mapping", self.dims.kv_rows, skips_negative=False)
        rows.check_offsets("cu_seqlens", live.tokens, closed=True)
        return slots

    def capture_fills(self, padded: PrefillExtents) -> dict[str, float]:
        return {"slot_mapping": 0}


class _PrefillFirst(
    PrefillSteps,
    rt.EntryStage[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots, OutT],
):
    """What the places of this kind share."""

    inputs_type = PrefillFirstInputs

    def __init__(
        self,
        *,
        model: PrefillFirstModel,
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
        slots: PrefillFirstSlots,
        boundary: None,
        rows: PrefillExtents,
        made: rt.Made,
    ) -> object:
        return self.model(
            input_ids=slots.input_ids,
            positions=slots.positions,
            batch=slots,
            inputs_embeds=None,
        )


class PrefillFirst(_PrefillFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
