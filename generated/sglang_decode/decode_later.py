# ppcgc: generated from specs/sglang_decode.yaml by ppcgc 0.1.0, ABI 4; do not edit
# spec: sha256:c4a62b50f35e2c9ca438a2bfdd47451d633610f72adfbedfcccc3d09e8502cf3
"""sglang_decode.decode, middle and last stages: slots, how a batch fills them, runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from ppcgc import runtime as rt
from torch import Tensor

from .boundary import Boundary, HandedOn, Received
from .decode import DecodeExtents, DecodeOutputs, DecodeResults, DecodeSteps
from .decode_slots import SLOTS
from .family import Dims, State

# what the forward is given, always by keyword
KEYWORDS: tuple[str, ...] = ("batch",)

OutT = TypeVar("OutT")


class DecodeLaterBatchNgramEmbeddingInfo(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def column_starts(self) -> Tensor: ...  # [requests] int32, sglang_decode.yaml:76
    @property
    def req_lens(self) -> Tensor: ...  # [requests] int32, sglang_decode.yaml:77


class DecodeLaterBatch(Protocol):
    """What a batch must offer: any object with these attributes will do."""

    @property
    def batch_size(self) -> int: ...  # live requests
    @property
    def input_ids(self) -> Tensor: ...  # [tokens] int64, sglang_decode.yaml:55
    @property
    def positions(self) -> Tensor: ...  # [tokens] int64, sglang_decode.yaml:56
    @property
    def out_cache_loc(self) -> Tensor: ...  # [tokens] int64, sglang_decode.yaml:57
    @property
    def req_pool_indices(self) -> Tensor: ...  # [requests] int64, sglang_decode.yaml:58
    @property
    def seq_lens(self) -> Tensor: ...  # [requests] int64, sglang_decode.yaml:59
    @property
    def seq_lens_cpu(self) -> rt.HostSource: ...  # [requests] int64, sglang_decode.yaml:60
    @property
    def mrope_positions(self) -> Tensor: ...  # [3, tokens] int64, sglang_decode.yaml:61
    @property
    def mamba_track_indices(self) -> Tensor: ...  # [requests] int64, sglang_decode.yaml:62
    @property
    def mamba_track_mask(self) -> Tensor: ...  # [requests] bool, sglang_decode.yaml:63
    @property
    def encoder_lens(self) -> Tensor: ...  # [requests] int32, sglang_decode.yaml:64
    @property
    def ngram_embedding_info(self) -> DecodeLaterBatchNgramEmbeddingInfo: ...
    @property
    def rids_int(self) -> Tensor: ...  # [requests] int64, sglang_decode.yaml:81
    @property
    def bootstrap_room_ids_int(self) -> Tensor: ...  # [requests] int64, sglang_decode.yaml:82
    @property
    def global_num_tokens_cpu(self) -> object: ...  # live requests of each dp rank


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeLaterNgramEmbeddingInfoSlots(rt.SlotView):
    """The group ngram_embedding_info of the slots."""

    column_starts: Tensor | None  # [requests] int32, sglang_decode.yaml:76
    req_lens: Tensor | None  # [requests] int32, sglang_decode.yaml:77


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeLaterPpProxyTensorsSlots(rt.SlotView):
    """The group pp_proxy_tensors of the slots."""

    hidden_states: Tensor  # [tokens, hidden] model, sglang_decode.yaml:78
    residual: Tensor  # [tokens, hidden] model, sglang_decode.yaml:79
    topk_indices: Tensor | None  # [tokens, topk] int32, sglang_decode.yaml:80


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecodeLaterSlots(rt.SlotView):
    """The slots of a bucket: padded rows at fixed addresses. Or a batch's own, live rows."""

    input_ids: Tensor  # [tokens] int64, sglang_decode.yaml:55
    positions: Tensor  # [tokens] int64, sglang_decode.yaml:56
    out_cache_loc: Tensor  # [tokens] int64, sglang_decode.yaml:57
    req_pool_indices: Tensor  # [requests] int64, sglang_decode.yaml:58
    seq_lens: Tensor  # [requests] int64, sglang_decode.yaml:59
    seq_lens_cpu: Tensor  # [requests] int64, sglang_decode.yaml:60
    mrope_positions: Tensor | None  # [3, tokens] int64, sglang_decode.yaml:61
    mamba_track_indices: Tensor | None  # [requests] int64, sglang_decode.yaml:62
    mamba_track_mask: Tensor | None  # [requests] bool, sglang_decode.yaml:63
    encoder_lens: Tensor | None  # [requests] int32, sglang_decode.yaml:64
    num_token_non_padded: Tensor | None  # [1] int32, sglang_decode.yaml:66
    # [dp.size if options.mlp_tp_gather else 1] int32, sglang_decode.yaml:74
    global_num_tokens_gpu: Tensor
    # [dp.size if options.mlp_tp_gather else 1] int32, sglang_decode.yaml:75
    global_num_tokens_for_logprob_gpu: Tensor
    ngram_embedding_info: DecodeLaterNgramEmbeddingInfoSlots  # a group
    pp_proxy_tensors: DecodeLaterPpProxyTensorsSlots  # a group
    rids_int: Tensor | None  # [requests] int64, sglang_decode.yaml:81
    bootstrap_room_ids_int: Tensor | None  # [requests] int64, sglang_decode.yaml:82


class DecodeLaterModel(Protocol):
    """What the model's forward must take."""

    def forward(self, *, batch: DecodeLaterSlots) -> object: ...


class DecodeLaterInputs(rt.Inputs[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots]):
    """The slots in memory, and how a batch gets into them. See ``rt.Inputs`` for each method."""

    facts = SLOTS

    def shapes(self, rows: DecodeExtents) -> dict[str, tuple[int, ...]]:
        return {
            "input_ids": (rows.tokens,),
            "positions": (rows.tokens,),
            "out_cache_loc": (rows.tokens,),
            "req_pool_indices": (rows.requests,),
            "seq_lens": (rows.requests,),
            "seq_lens_cpu": (rows.requests,),
            "mrope_positions": (3, rows.tokens),
            "mamba_track_indices": (rows.requests,),
            "mamba_track_mask": (rows.requests,),
            "encoder_lens": (rows.requests,),
            "num_token_non_padded": (1,),
            "global_num_tokens_gpu": (self.dims.dp.size if self.dims.options.mlp_tp_gather else 1,),
            "global_num_tokens_for_logprob_gpu": (
                self.dims.dp.size if self.dims.options.mlp_tp_gather else 1,
            ),
            "ngram_embedding_info.column_starts": (rows.requests,),
            "ngram_embedding_info.req_lens": (rows.requests,),
            "pp_proxy_tensors.hidden_states": (rows.tokens, self.dims.hidden),
            "pp_proxy_tensors.residual": (rows.tokens, self.dims.hidden),
            "pp_proxy_tensors.topk_indices": (rows.tokens, self.dims.topk),
            "rids_int": (rows.requests,),
            "bootstrap_room_ids_int": (rows.requests,),
        }

    def lacks(self, rows: DecodeExtents) -> frozenset[str]:
        there = {
            "mrope_positions": self.dims.options.mrope,
            "mamba_track_indices": self.dims.options.mamba_track,
            "mamba_track_mask": self.dims.options.mamba_track,
            "encoder_lens": self.dims.options.encoder_decoder,
            "num_token_non_padded": self.dims.options.expert_parallel,
            "ngram_embedding_info.column_starts": self.dims.options.ngram_embedding,
            "ngram_embedding_info.req_lens": self.dims.options.ngram_embedding,
            "pp_proxy_tensors.topk_indices": self.dims.options.topk_handed_on,
            "rids_int": self.dims.options.canary,
            "bootstrap_room_ids_int": self.dims.options.canary,
        }
        return frozenset(name for name, holds in there.items() if not holds)

    def slots(self, of: Mapping[str, Tensor]) -> DecodeLaterSlots:
        return DecodeLaterSlots(
            input_ids=of["input_ids"],
            positions=of["positions"],
            out_cache_loc=of["out_cache_loc"],
            req_pool_indices=of["req_pool_indices"],
            seq_lens=of["seq_lens"],
            seq_lens_cpu=of["seq_lens_cpu"],
            mrope_positions=of.get("mrope_positions"),
            mamba_track_indices=of.get("mamba_track_indices"),
            mamba_track_mask=of.get("mamba_track_mask"),
            encoder_lens=of.get("encoder_lens"),
            num_token_non_padded=of.get("num_token_non_padded"),
            global_num_tokens_gpu=of["global_num_tokens_gpu"],
            global_num_tokens_for_logprob_gpu=of["global_num_tokens_for_logprob_gpu"],
            ngram_embedding_info=DecodeLaterNgramEmbeddingInfoSlots(
                column_starts=of.get("ngram_embedding_info.column_starts"),
                req_lens=of.get("ngram_embedding_info.req_lens"),
            ),
            pp_proxy_tensors=DecodeLaterPpProxyTensorsSlots(
                hidden_states=of["pp_proxy_tensors.hidden_states"],
                residual=of["pp_proxy_tensors.residual"],
                topk_indices=of.get("pp_proxy_tensors.topk_indices"),
            ),
            rids_int=of.get("rids_int"),
            bootstrap_room_ids_int=of.get("bootstrap_room_ids_int"),
        )

    def load(
        self,
        slots: DecodeLaterSlots,
        host: rt.BucketHost,
        batch: DecodeLaterBatch,
        live: DecodeExtents,
        padded: DecodeExtents,
    ) -> None:
        (
            counts,
            num_token_non_padded_rows,
            global_num_tokens_gpu_rows,
            global_num_tokens_for_logprob_gpu_rows,
        ) = host.begin()
        counts.set_rows(live[:2])
        # input_ids (sglang_decode.yaml:55): batch.input_ids, then zero
        host.move_rows(slots.input_ids, batch.input_ids, live.tokens, "input_ids", 0)
        # positions (sglang_decode.yaml:56): batch.positions, then zero
        host.move_rows(slots.positions, batch.positions, live.tokens, "positions", 0)
        # out_cache_loc (sglang_decode.yaml:57): batch.out_cache_loc, then zero
        host.move_rows(slots.out_cache_loc, batch.out_cache_loc, live.tokens, "out_cache_loc", 0)
        # req_pool_indices (sglang_decode.yaml:58): batch.req_pool_indices, then zero
        host.move_rows(
            slots.req_pool_indices,
            batch.req_pool_indices,
            live.requests,
            "req_pool_indices",
            0,
        )
        # seq_lens (sglang_decode.yaml:59): batch.seq_lens, then its fill
        host.move_rows(
            slots.seq_lens,
            batch.seq_lens,
            live.requests,
            "seq_lens",
            self.dims.seq_len_fill,
        )
        # seq_lens_cpu (sglang_decode.yaml:60): batch.seq_lens_cpu, then its fill
        seq_lens_cpu_rows = rt.upload_rows(
            slots.seq_lens_cpu,
            batch.seq_lens_cpu,
            live.requests,
            "seq_lens_cpu",
        )
        rt.check_bounded("seq_lens_cpu", seq_lens_cpu_rows, self.dims.max_position)
        rt.pad_fill(slots.seq_lens_cpu, live.requests, self.dims.seq_len_fill)
        # mrope_positions (sglang_decode.yaml:61): batch.mrope_positions, then zero
        if slots.mrope_positions is not None:
            rt.copy_rows(
                slots.mrope_positions,
                batch.mrope_positions,
                live.tokens,
                "mrope_positions",
                dim=1,
            )
            rt.pad_zero(slots.mrope_positions, live.tokens, dim=1)
        # mamba_track_indices (sglang_decode.yaml:62): batch.mamba_track_indices, then zero
        if slots.mamba_track_indices is not None:
            rt.copy_rows(
                slots.mamba_track_indices,
                batch.mamba_track_indices,
                live.requests,
                "mamba_track_indices",
            )
            rt.pad_zero(slots.mamba_track_indices, live.requests)
        # mamba_track_mask (sglang_decode.yaml:63): batch.mamba_track_mask, then zero
        if slots.mamba_track_mask is not None:
            rt.copy_rows(
                slots.mamba_track_mask,
                batch.mamba_track_mask,
                live.requests,
                "mamba_track_mask",
            )
            rt.pad_zero(slots.mamba_track_mask, live.requests)
        # encoder_lens (sglang_decode.yaml:64): batch.encoder_lens, then its fill
        if slots.encoder_lens is not None:
            rt.copy_rows(slots.encoder_lens, batch.encoder_lens, live.requests, "encoder_lens")
            rt.pad_fill(slots.encoder_lens, live.requests, self.dims.encoder_len_fill)
        # num_token_non_padded (sglang_decode.yaml:66): computed for every padded row
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
        # global_num_tokens_gpu (sglang_decode.yaml:74): computed for every padded row
        global_num_tokens_gpu_rows.set_all(
            padded.tokens if self.dims.options.gathered_buffer else 0,
        )
        # global_num_tokens_for_logprob_gpu (sglang_decode.yaml:75): computed for every padded row
        global_num_tokens_for_logprob_gpu_rows.set_all(
            padded.tokens if self.dims.options.gathered_buffer else 0,
        )
        # ngram_embedding_info.column_starts (sglang_decode.yaml:76):
        # batch.ngram_embedding_info.column_starts, then zero
        if slots.ngram_embedding_info.column_starts is not None:
            rt.copy_rows(
                slots.ngram_embedding_info.column_starts,
                None
                if batch.ngram_embedding_info is None
                else batch.ngram_embedding_info.column_starts,
                live.requests,
                "ngram_embedding_info.column_starts",
            )
            rt.pad_zero(slots.ngram_embedding_info.column_starts, live.requests)
        # ngram_embedding_info.req_lens (sglang_decode.yaml:77):
        # batch.ngram_embedding_info.req_lens, then its fill
        if slots.ngram_embedding_info.req_lens is not None:
            rt.copy_rows(
                slots.ngram_embedding_info.req_lens,
                None if batch.ngram_embedding_info is None else batch.ngram_embedding_info.req_lens,
                live.requests,
                "ngram_embedding_info.req_lens",
            )
            rt.pad_fill(slots.ngram_embedding_info.req_lens, live.requests, 1)
        # rids_int (sglang_decode.yaml:81): batch.rids_int, then zero
        if slots.rids_int is not None:
            rt.copy_rows(slots.rids_int, batch.rids_int, live.requests, "rids_int")
            rt.pad_zero(slots.rids_int, live.requests)
        # bootstrap_room_ids_int (sglang_decode.yaml:82): batch.bootstrap_room_ids_int, then its
        # fill
        if slots.bootstrap_room_ids_int is not None:
            rt.copy_rows(
                slots.bootstrap_room_ids_int,
                batch.bootstrap_room_ids_int,
                live.requests,
                "bootstrap_room_ids_int",
            )
            rt.pad_fill(slots.bootstrap_room_ids_int, live.requests, -1)
        host.push()

    def bind(
        self,
        batch: DecodeLaterBatch,
        boundary: Boundary,
        live: DecodeExtents,
    ) -> DecodeLaterSlots:
        rows = rt.EagerRows(self.table(), self.shapes(live), self.dtype, self.device)
        mrope_positions_slot: Tensor | None = None
        if self.dims.options.mrope:
            mrope_positions_slot = rows.own("mrope_positions", batch.mrope_positions)
        mamba_track_indices_slot: Tensor | None = None
        if self.dims.options.mamba_track:
            mamba_track_indices_slot = rows.own("mamba_track_indices", batch.mamba_track_indices)
        mamba_track_mask_slot: Tensor | None = None
        if self.dims.options.mamba_track:
            mamba_track_mask_slot = rows.own("mamba_track_mask", batch.mamba_track_mask)
        encoder_lens_slot: Tensor | None = None
        if self.dims.options.encoder_decoder:
            encoder_lens_slot = rows.own("encoder_lens", batch.encoder_lens)
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
        ngram_embedding_info_column_starts_slot: Tensor | None = None
        if self.dims.options.ngram_embedding:
            ngram_embedding_info_column_starts_slot = rows.own(
                "ngram_embedding_info.column_starts",
                None
                if batch.ngram_embedding_info is None
                else batch.ngram_embedding_info.column_starts,
            )
        ngram_embedding_info_req_lens_slot: Tensor | None = None
        if self.dims.options.ngram_embedding:
            ngram_embedding_info_req_lens_slot = rows.own(
                "ngram_embedding_info.req_lens",
                None if batch.ngram_embedding_info is None else batch.ngram_embedding_info.req_lens,
            )
        pp_proxy_tensors_topk_indices_slot: Tensor | None = None
        if self.dims.options.topk_handed_on:
            pp_proxy_tensors_topk_indices_slot = boundary.topk_indices
        rids_int_slot: Tensor | None = None
        if self.dims.options.canary:
            rids_int_slot = rows.own("rids_int", batch.rids_int)
        bootstrap_room_ids_int_slot: Tensor | None = None
        if self.dims.options.canary:
            bootstrap_room_ids_int_slot = rows.own(
                "bootstrap_room_ids_int",
                batch.bootstrap_room_ids_int,
            )
        slots = DecodeLaterSlots(
            input_ids=rows.own("input_ids", batch.input_ids),
            positions=rows.own("positions", batch.positions),
            out_cache_loc=rows.own("out_cache_loc", batch.out_cache_loc),
            req_pool_indices=rows.own("req_pool_indices", batch.req_pool_indices),
            seq_lens=rows.own("seq_lens", batch.seq_lens),
            seq_lens_cpu=rows.on_host("seq_lens_cpu", batch.seq_lens_cpu),
            mrope_positions=mrope_positions_slot,
            mamba_track_indices=mamba_track_indices_slot,
            mamba_track_mask=mamba_track_mask_slot,
            encoder_lens=encoder_lens_slot,
            num_token_non_padded=num_token_non_padded_slot,
            global_num_tokens_gpu=rows.filled(
                "global_num_tokens_gpu",
                live.tokens if self.dims.options.gathered_buffer else 0,
            ),
            global_num_tokens_for_logprob_gpu=rows.filled(
                "global_num_tokens_for_logprob_gpu",
                live.tokens if self.dims.options.gathered_buffer else 0,
            ),
            ngram_embedding_info=DecodeLaterNgramEmbeddingInfoSlots(
                column_starts=ngram_embedding_info_column_starts_slot,
                req_lens=ngram_embedding_info_req_lens_slot,
            ),
            pp_proxy_tensors=DecodeLaterPpProxyTensorsSlots(
                hidden_states=boundary.hidden_states,
                residual=boundary.residual,
                topk_indices=pp_proxy_tensors_topk_indices_slot,
            ),
            rids_int=rids_int_slot,
            bootstrap_room_ids_int=bootstrap_room_ids_int_slot,
        )
        rows.check_bounded("seq_lens_cpu", self.dims.max_position)
        return slots

    def capture_fills(self, padded: DecodeExtents) -> dict[str, float]:
        return {"out_cache_loc": 0, "mamba_track_indices": 0}


class _DecodeLater(
    DecodeSteps,
    rt.LaterStage[DecodeExtents, DecodeLaterBatch, Dims, DecodeLaterSlots, Boundary, OutT],
):
    """What the places of this kind share."""

    inputs_type = DecodeLaterInputs
    incoming_type = Received

    def __init__(
        self,
        *,
        model: DecodeLaterModel,
        layers: rt.LayerRange,
        dims: Dims,
        state: State,
        dtype: torch.dtype,
        backend: rt.Backend,
    ) -> None:
        rt.check_given(type(self), layers, dtype, backend, dims=(dims, Dims), state=(state, State))
        state.check(dims, backend.device)
        rt.check_value(
            "seq_lens",
            dims.seq_len_fill,
            torch.int64,
            "sglang_decode.yaml:59",
            below=dims.max_position + 1,
        )
        rt.check_value(
            "seq_lens_cpu",
            dims.seq_len_fill,
            torch.int64,
            "sglang_decode.yaml:60",
            below=dims.max_position + 1,
        )
        if dims.options.encoder_decoder:
            rt.check_value(
                "encoder_lens",
                dims.encoder_len_fill,
                torch.int32,
                "sglang_decode.yaml:64",
            )
        forward = rt.check_forward(model, KEYWORDS, type(self).__name__)
        super().__init__(model=forward, layers=layers, dims=dims, dtype=dtype, backend=backend)
        self.state = state

    def forward(
        self,
        slots: DecodeLaterSlots,
        boundary: Boundary,
        rows: DecodeExtents,
        made: rt.Made,
    ) -> object:
        return self.model(batch=slots)


class DecodeMiddle(_DecodeLater[Boundary]):
    """A stage between two others: takes a boundary, hands one on."""

    place = rt.Place.MIDDLE
    outputs_type = HandedOn


class DecodeLast(_DecodeLater[DecodeOutputs]):
    """The last stage: takes a boundary, gives the outputs."""

    place = rt.Place.LAST
    outputs_type = DecodeResults
