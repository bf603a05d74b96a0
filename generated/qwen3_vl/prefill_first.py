# ppcgc: generated from specs/qwen3_vl.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:5c0b7ce280438fd8fe951fd90da2c1bcf5fbdee7f437f27952bf2c2672738b61
"""qwen3_vl.prefill, first stage: slots, how a batch fills them, runners."""

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
KEYWORDS = ("positions", "batch", "inputs_embeds", "deepstack")

OutT = TypeVar("OutT")


class PrefillFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def num_tokens(self) -> int: ...  # live tokens
    @property
    def num_requests(self) -> int: ...  # live requests
    @property
    def positions(self) -> rt.HostSource: ...  # [3, tokens] int64, qwen3_vl.yaml:34
    @property
    def slot_mapping(self) -> rt.HostSource: ...  # [tokens] int64, llama_hf.yaml:37
    @property
    def cu_seqlens(self) -> rt.HostSource: ...  # [requests + 1] int32, llama_hf.yaml:38
    @property
    def deepstack(self) -> Tensor | None: ...  # [deepstack, tokens, hidden] model, qwen3_vl.yaml:37


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    positions: Tensor  # [3, tokens] int64, qwen3_vl.yaml:34
    slot_mapping: Tensor  # [tokens] int64, llama_hf.yaml:37
    cu_seqlens: Tensor  # [requests + 1] int32, llama_hf.yaml:38
    inputs_embeds: Tensor  # [tokens, hidden] model, qwen3_vl.yaml:36
    deepstack: Tensor  # [deepstack, tokens, hidden] model, qwen3_vl.yaml:37


class PrefillFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(
        self,
        *,
        positions: Tensor,
        batch: PrefillFirstSlots,
        inputs_embeds: Tensor,
        deepstack: Tensor,
    ) -> object: ...


class PrefillFirstInputs(rt.Inputs[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(
        SLOTS,
        "positions",
        "slot_mapping",
        "cu_seqlens",
        "inputs_embeds",
        "deepstack",
    )

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "positions": (3, rows.tokens),
            "slot_mapping": (rows.tokens,),
            "cu_seqlens": (rows.requests + 1,),
            "inputs_embeds": (rows.tokens, self.dims.hidden),
            "deepstack": (self.dims.deepstack, rows.tokens, self.dims.hidden),
        }

    def slots(self, of: Mapping[str, Tensor]) -> PrefillFirstSlots:
        return PrefillFirstSlots(
            positions=of["positions"],
            slot_mapping=of["slot_mapping"],
            cu_seqlens=of["cu_seqlens"],
            inputs_embeds=of["inputs_embeds"],
            deepstack=of["deepstack"],
        )

    def load(
        self,
        slots: PrefillFirstSlots,
        host: rt.BucketHost,
        batch: PrefillFirstBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, positions_rows, slot_mapping_rows, cu_seqlens_rows = host.begin()
        counts.set_rows(live)
        # positions (qwen3_vl.yaml:34): batch.positions, then zero
        positions_rows.put(batch.positions, live.tokens)
        positions_rows.check_index(live.tokens, self.dims.max_position)
        # slot_mapping (llama_hf.yaml:37): batch.slot_mapping, then zero
        slot_mapping_rows.put(batch.slot_mapping, live.tokens)
        slot_mapping_rows.check_write_index(live.tokens, self.dims.kv_rows, skips_negative=False)
        # cu_seqlens (llama_hf.yaml:38): batch.cu_seqlens, then the last live row again
        cu_seqlens_rows.put(batch.cu_seqlens, live.requests + 1)
        cu_seqlens_rows.pad_repeat_last(live.requests + 1)
        cu_seqlens_rows.check_offsets(live.requests + 1, live.tokens, closed=True)
        # inputs_embeds (qwen3_vl.yaml:36): live rows are zero until the caller writes them
        rt.fill_whole(slots.inputs_embeds, 0)
        # deepstack (qwen3_vl.yaml:37): batch.deepstack, then zero
        if batch.deepstack is None:
            rt.fill_live(slots.deepstack, live.tokens, 0, dim=1)
        else:
            rt.copy_rows(slots.deepstack, batch.deepstack, live.tokens, "deepstack", dim=1)
        rt.pad_zero(slots.deepstack, live.tokens, dim=1)
        host.push()

    def pad_late(
        self,
        slots: PrefillFirstSlots,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        # inputs_embeds (qwen3_vl.yaml:36): written by the caller before finish(), then zero
        rt.pad_zero(slots.inputs_embeds, live.tokens)

    def bind(
        self,
        batch: PrefillFirstBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        slots = PrefillFirstSlots(
            positions=rows.upload("positions", batch.positions),
            slot_mapping=rows.upload("slot_mapping", batch.slot_mapping),
            cu_seqlens=rows.upload("cu_seqlens", batch.cu_seqlens),
            inputs_embeds=rows.filled("inputs_embeds", 0),
            deepstack=rows.own("deepstack", batch.deepstack, absent=0),
        )
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
            positions=slots.positions,
            batch=slots,
            inputs_embeds=slots.inputs_embeds,
            deepstack=slots.deepstack,
        )


class PrefillFirst(_PrefillFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
