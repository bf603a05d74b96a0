# ppcgc: generated from specs/sglang_prefill.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:f8d530ac0644a20edd50ef335b38862d75a55fac961252e19282bd1619178667
"""sglang_prefill.prefill, only and first stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn
from .family import Dims, State
from .prefill import PrefillExtents, PrefillOutputs, PrefillResults, PrefillSteps
from .prefill_slots import SLOTS

# what the forward is given, always by keyword
KEYWORDS: tuple[str, ...] = ("batch",)

OutT = TypeVar("OutT")


class PrefillFirstBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def extend_num_tokens(self) -> int: ...  # live tokens
    @property
    def batch_size(self) -> int: ...  # live requests
    @property
    def mamba_track_seqlens(self) -> Tensor: ...  # [requests] int32, sglang_prefill.yaml:58
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, sglang_prefill.yaml:50
    @property
    def positions(self) -> Tensor: ...  # [tokens] int64, sglang_prefill.yaml:51
    @property
    def out_cache_loc(self) -> Tensor: ...  # [tokens] int64, sglang_prefill.yaml:52
    @property
    def mrope_positions(self) -> Tensor: ...  # [3, tokens] int64, sglang_prefill.yaml:53
    @property
    def mamba_track_indices(self) -> Tensor: ...  # [requests] int64, sglang_prefill.yaml:56
    @property
    def mamba_track_mask(self) -> Tensor: ...  # [requests] bool, sglang_prefill.yaml:57
    @property
    def global_num_tokens_cpu(self) -> object: ...  # live tokens of each dp rank


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrefillFirstSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, sglang_prefill.yaml:50
    positions: Tensor  # [tokens] int64, sglang_prefill.yaml:51
    out_cache_loc: Tensor  # [tokens] int64, sglang_prefill.yaml:52
    mrope_positions: Tensor | None  # [3, tokens] int64, sglang_prefill.yaml:53
    input_embeds: Tensor | None  # [tokens, hidden] model, sglang_prefill.yaml:54
    mamba_track_indices: Tensor | None  # [requests] int64, sglang_prefill.yaml:56
    mamba_track_mask: Tensor | None  # [requests] bool, sglang_prefill.yaml:57
    mamba_track_seqlens: Tensor | None  # [requests] int32, sglang_prefill.yaml:58
    num_token_non_padded: Tensor | None  # [1] int32, sglang_prefill.yaml:60


class PrefillFirstModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: PrefillFirstSlots) -> object: ...


class PrefillFirstInputs(rt.Inputs[PrefillExtents, PrefillFirstBatch, Dims, PrefillFirstSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = rt.facts_of(
        SLOTS,
        "input_ids",
        "positions",
        "out_cache_loc",
        "mrope_positions",
        "input_embeds",
        "mamba_track_indices",
        "mamba_track_mask",
        "mamba_track_seqlens",
        "num_token_non_padded",
    )

    def shapes(self, rows: PrefillExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "out_cache_loc": (rows.tokens,),
            "mrope_positions": (3, rows.tokens),
            "input_embeds": (rows.tokens, self.dims.hidden),
            "mamba_track_indices": (rows.requests,),
            "mamba_track_mask": (rows.requests,),
            "mamba_track_seqlens": (rows.requests,),
            "num_token_non_padded": (1,),
        }

    def lacks(self, rows: PrefillExtents) -> frozenset[str]:
        there = {
            "mrope_positions": self.dims.options.multimodal,
            "input_embeds": self.dims.options.multimodal,
            "mamba_track_indices": self.dims.options.mamba_track,
            "mamba_track_mask": self.dims.options.mamba_track,
            "mamba_track_seqlens": self.dims.options.mamba_track,
            "num_token_non_padded": self.dims.options.expert_parallel,
        }
        return frozenset(name for name, holds in there.items() if not holds)

    def slots(self, of: Mapping[str, Tensor]) -> PrefillFirstSlots:
        return PrefillFirstSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            out_cache_loc=of["out_cache_loc"],
            mrope_positions=of.get("mrope_positions"),
            input_embeds=of.get("input_embeds"),
            mamba_track_indices=of.get("mamba_track_indices"),
            mamba_track_mask=of.get("mamba_track_mask"),
            mamba_track_seqlens=of.get("mamba_track_seqlens"),
            num_token_non_padded=of.get("num_token_non_padded"),
        )

    def load(
        self,
        slots: PrefillFirstSlots,
        host: rt.BucketHost,
        batch: PrefillFirstBatch,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        counts, num_token_non_padded_rows = host.begin()
        counts.set_rows(live[:2])
        # input_ids (sglang_prefill.yaml:50): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        # positions (sglang_prefill.yaml:51): batch.positions, then zero
        host.move_rows(slots.positions, batch.positions, live.tokens, "positions", 0)
        # out_cache_loc (sglang_prefill.yaml:52): batch.out_cache_loc, then zero
        host.move_rows(slots.out_cache_loc, batch.out_cache_loc, live.tokens, "out_cache_loc", 0)
        # mrope_positions (sglang_prefill.yaml:53): batch.mrope_positions, then zero
        if slots.mrope_positions is not None:
            rt.copy_rows(
                slots.mrope_positions,
                batch.mrope_positions,
                live.tokens,
                "mrope_positions",
                dim=1,
            )
            rt.pad_zero(slots.mrope_positions, live.tokens, dim=1)
        # input_embeds (sglang_prefill.yaml:54): live rows are zero until the caller writes them
        if slots.input_embeds is not None:
            rt.fill_whole(slots.input_embeds, 0)
        # mamba_track_indices (sglang_prefill.yaml:56): batch.mamba_track_indices, then zero
        if slots.mamba_track_indices is not None:
            rt.copy_rows(
                slots.mamba_track_indices,
                batch.mamba_track_indices,
                live.requests,
                "mamba_track_indices",
            )
            rt.pad_zero(slots.mamba_track_indices, live.requests)
        # mamba_track_mask (sglang_prefill.yaml:57): batch.mamba_track_mask, then zero
        if slots.mamba_track_mask is not None:
            rt.copy_rows(
                slots.mamba_track_mask,
                batch.mamba_track_mask,
                live.requests,
                "mamba_track_mask",
            )
            rt.pad_zero(slots.mamba_track_mask, live.requests)
        # mamba_track_seqlens (sglang_prefill.yaml:58): batch.mamba_track_seqlens, then zero
        if slots.mamba_track_seqlens is not None:
            rt.copy_rows(
                slots.mamba_track_seqlens,
                batch.mamba_track_seqlens,
                live.requests,
                "mamba_track_seqlens",
                cast=True,
            )
            rt.pad_zero(slots.mamba_track_seqlens, live.requests)
        # num_token_non_padded (sglang_prefill.yaml:60): computed for every padded row
        if slots.num_token_non_padded is not None:
            num_token_non_padded_rows.set_all(
                min(
                    max(
                        live.tokens
                        - rt.floor_div(padded.tokens, self.dims.tp.size) * self.dims.tp.rank,
                        0,
                    ),
                    rt.floor_div(padded.tokens, self.dims.tp.size),
                )
                if self.dims.options.sequence_sharded
                else live.tokens,
            )
        host.push()

    def pad_late(
        self,
        slots: PrefillFirstSlots,
        live: PrefillExtents,
        padded: PrefillExtents,
    ) -> None:
        # input_embeds (sglang_prefill.yaml:54): written by the caller before finish(), then zero
        if slots.input_embeds is not None:
            rt.pad_zero(slots.input_embeds, live.tokens)

    def bind(
        self,
        batch: PrefillFirstBatch,
        boundary: None,
        live: PrefillExtents,
    ) -> PrefillFirstSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        mrope_positions_slot: Tensor | None = None
        if self.dims.options.multimodal:
            mrope_positions_slot = rows.own("mrope_positions", batch.mrope_positions)
        input_embeds_slot: Tensor | None = None
        if self.dims.options.multimodal:
            input_embeds_slot = rows.filled("input_embeds", 0)
        mamba_track_indices_slot: Tensor | None = None
        if self.dims.options.mamba_track:
            mamba_track_indices_slot = rows.own("mamba_track_indices", batch.mamba_track_indices)
        mamba_track_mask_slot: Tensor | None = None
        if self.dims.options.mamba_track:
            mamba_track_mask_slot = rows.own("mamba_track_mask", batch.mamba_track_mask)
        mamba_track_seqlens_slot: Tensor | None = None
        if self.dims.options.mamba_track:
            mamba_track_seqlens_slot = rows.own(
                "mamba_track_seqlens",
                batch.mamba_track_seqlens,
                cast=True,
            )
        num_token_non_padded_slot: Tensor | None = None
        if self.dims.options.expert_parallel:
            num_token_non_padded_slot = rows.filled(
                "num_token_non_padded",
                min(
                    max(
                        live.tokens
                        - rt.floor_div(live.tokens, self.dims.tp.size) * self.dims.tp.rank,
                        0,
                    ),
                    rt.floor_div(live.tokens, self.dims.tp.size),
                )
                if self.dims.options.sequence_sharded
                else live.tokens,
            )
        return PrefillFirstSlots(
            input_ids=rows.own("input_ids", batch.input_ids),
            positions=rows.own("positions", batch.positions),
            out_cache_loc=rows.own("out_cache_loc", batch.out_cache_loc),
            mrope_positions=mrope_positions_slot,
            input_embeds=input_embeds_slot,
            mamba_track_indices=mamba_track_indices_slot,
            mamba_track_mask=mamba_track_mask_slot,
            mamba_track_seqlens=mamba_track_seqlens_slot,
            num_token_non_padded=num_token_non_padded_slot,
        )

    def capture_fills(self, padded: PrefillExtents) -> dict[str, float]:
        return {"out_cache_loc": 0, "mamba_track_indices": 0}


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
        return self.model(batch=slots)


class PrefillOnly(_PrefillFirst[PrefillOutputs]):
    """The whole model in one stage."""

    place = rt.Place.ONLY
    outputs_type = PrefillResults


class PrefillFirst(_PrefillFirst[Boundary]):
    """The first stage: takes the batch, hands on a boundary."""

    place = rt.Place.FIRST
    outputs_type = HandedOn
